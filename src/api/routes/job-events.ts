/** GET /v1/jobs/{jobId}/events: a job as Server-Sent Events (decisions A4; WHATWG HTML, "Server-sent events"). */
import type { Job } from '../../contract/job.ts';
import { processingSteps } from '../../contract/job.ts';
import { LastEventHeaders } from '../../contract/request-headers.ts';
import { openStream } from '../event-streams.ts';
import { jobAnswer } from '../job-answer.ts';
import { findJob, ownedJob } from '../owned-job.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';

export const jobEventRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/jobs/:jobId/events',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'watchJob',
      summary: 'Watch a job until all of it has ended, its transcripts and destinations too',
      description:
        'Server-Sent Events: `event: job` with the job as GET /v1/jobs/{jobId} gives it, first as it is now, then at each change; a comment each 15 s; closed after the end. A client that comes back with the id of the last event gets 204.',
      tag: 'Jobs',
      headers: LastEventHeaders,
      answers: {
        200: { description: 'The stream', content: { 'text/event-stream': 'binary' } },
        204: { description: 'The job has ended and the caller has seen its end', content: {} },
      },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    handle: watch,
  },
];

const HEARTBEAT_MS = 15_000;
/** A change whose message was lost shows with the next look. */
const LOOK_MS = 5000;
/** Above every counter of an unfinished job. */
const LAST_EVENT_ID = 1_000_000;

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Proxies of the nginx kind hold answers back otherwise.
  'X-Accel-Buffering': 'no',
};

async function watch(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const { jobId } = await ownedJob(context);
  let job = await currentJob(context, jobId);
  if (job !== undefined && isEnded(job) && Number(request.get('last-event-id')) >= LAST_EVENT_ID) {
    response.status(204).end();
    return;
  }
  if (request.method === 'HEAD') {
    // Held open it would block whatever comes next on the connection, though its answer is complete.
    response.status(200).set(STREAM_HEADERS).end();
    return;
  }
  const { redis, settings } = services;
  const stream = await openStream(redis, keyOf(context).id, settings.eventStreamsPerKey);
  response.status(200).set(STREAM_HEADERS);
  const changes = new Changes();
  const unwatch = services.changes.watch(jobId, () => changes.happened());
  const looking = setInterval(() => changes.happened(), LOOK_MS);
  const heartbeat = setInterval(() => {
    response.write(':\n\n');
    stream.renew();
  }, HEARTBEAT_MS);
  const ended = AbortSignal.any([services.changes.closing, closedSignal(response)]);
  ended.addEventListener('abort', () => changes.end(), { once: true });
  if (ended.aborted) {
    // The request came on an open connection after the server was told to stop: no event tells of it any more.
    changes.end();
  }
  try {
    let sent = '';
    // The state is read after the watch began, so no change falls in between.
    for (job = await currentJob(context, jobId); job !== undefined; job = await currentJob(context, jobId)) {
      const data = JSON.stringify(job);
      if (data !== sent) {
        response.write(`event: job\nid: ${eventId(job)}\ndata: ${data}\n\n`);
        sent = data;
      }
      if (isEnded(job) || !(await changes.next())) {
        break;
      }
    }
  } finally {
    unwatch();
    clearInterval(looking);
    clearInterval(heartbeat);
    stream.close();
    response.end();
  }
}

function closedSignal(response: RouteContext['response']): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  // Whoever has gone while the job was looked up is told of by no event.
  if (response.closed) controller.abort();
  return controller.signal;
}

function currentJob({ services }: RouteContext, jobId: string): Promise<Job | undefined> {
  return services.watchedJobs.read(jobId, async () => {
    const record = await findJob(services, jobId);
    return record && (await jobAnswer(record, services));
  });
}

/** Nothing of it changes any more: its transcripts are there, and its files where they were to be put. */
function isEnded(job: Job): boolean {
  return job.status === 'failed' || (job.status === 'completed' && stepsLeft(job) === 0);
}

/** Of a completed job. A transcript that is there may be put somewhere, so it counts for two. */
function stepsLeft({ transcripts = [], outputFiles }: Job): number {
  const pending = transcripts.filter(({ status }) => status === 'pending');
  const puts = outputFiles.filter(({ destination }) => destination?.status === 'pending');
  return 2 * pending.length + puts.length;
}

/** Follows from the state alone, so that it counts on when the caller comes back to another process. */
function eventId(job: Job): number {
  if (job.status === 'completed' || job.status === 'failed') {
    return LAST_EVENT_ID - stepsLeft(job);
  }
  const step = job.currentStep === null ? 0 : processingSteps.indexOf(job.currentStep) + 1;
  return job.progress * (processingSteps.length + 1) + step;
}

/** Changes that come while one is being dealt with are one. */
class Changes {
  #pending = false;
  #ended = false;
  #wake: (() => void) | undefined;

  happened(): void {
    this.#pending = true;
    this.#wake?.();
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** Resolves with true at the next change, with false once nobody listens any more. */
  async next(): Promise<boolean> {
    if (!this.#pending && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#pending = false;
    return !this.#ended;
  }
}
