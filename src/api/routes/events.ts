/** GET /v1/jobs/{jobId}/events, GET /v1/events: Server-Sent Events (decisions A4; WHATWG HTML). */
import { type Job, processingSteps } from 'soundpost-contract/job';
import { LastEventHeaders } from 'soundpost-contract/request-headers';
import { ownedJob } from '../job-answer.ts';
import { jobStates } from '../job-states.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { answerHead, beginEvents, watchedJob } from '../server-sent-events.ts';

export const eventRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/jobs/:jobId/events',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'watchJob',
      summary: 'Watch a job until it has ended, including transcripts and destinations',
      description:
        'Server-Sent Events: `event: job` with the job as in GET /v1/jobs/{jobId}, now and at each change, and a comment every 15 s. The stream closes at the end. If you reconnect with the last event’s id, you get 204.',
      tag: 'Jobs',
      headers: LastEventHeaders,
      answers: {
        200: { description: 'The stream', content: { 'text/event-stream': 'binary' } },
        204: { description: 'The job has ended, and you have received its last event', content: {} },
      },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    handle: watchOne,
  },
  {
    method: 'get',
    path: '/v1/events',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'watchJobs',
      summary: 'Watch all jobs of the key',
      description:
        'An endless stream of Server-Sent Events: `event: job` with the job as in GET /v1/jobs/{jobId}, whenever one of the key’s jobs is accepted or changes, and a comment every 15 s. On `event: reset`, list the jobs again: it comes first, and when changes may have been lost. Events have no `id`. A job may come twice in the same state, and several changes may come as one. Voice messages, transcripts and destinations also change a job; webhook deliveries do not.',
      tag: 'Jobs',
      answers: { 200: { description: 'The stream', content: { 'text/event-stream': 'binary' } } },
      errors: [],
    },
    handle: watchAll,
  },
];

/** Above every counter of an unfinished job. */
const LAST_EVENT_ID = 1_000_000;

async function watchOne(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const { jobId } = await ownedJob(context);
  const look = (): Promise<Job | undefined> => watchedJob(services, jobId);
  const now = await look();
  if (now !== undefined && isEnded(now) && Number(request.get('last-event-id')) >= LAST_EVENT_ID) {
    response.status(204).end();
    return;
  }
  if (request.method === 'HEAD') return answerHead(context);
  const events = await beginEvents(context);
  try {
    let sent = '';
    for await (const job of jobStates(services.changes, jobId, look, events.ended)) {
      const data = JSON.stringify(job);
      if (data !== sent) {
        await events.send(`event: job\nid: ${eventId(job)}\ndata: ${data}\n\n`);
        sent = data;
      }
      if (isEnded(job)) break;
    }
  } finally {
    events.close();
  }
}

/** Final: its transcripts and its files' destinations are settled too. */
function isEnded(job: Job): boolean {
  return job.status === 'failed' || (job.status === 'completed' && stepsLeft(job) === 0);
}

/** Of a completed job. A pending transcript counts twice, because it may have a destination. */
function stepsLeft({ transcripts = [], outputFiles }: Job): number {
  const pending = transcripts.filter(({ status }) => status === 'pending');
  const puts = outputFiles.filter(({ destination }) => destination?.status === 'pending');
  return 2 * pending.length + puts.length;
}

/** Derived from the state alone, so it continues when the caller reconnects to another process. */
function eventId(job: Job): number {
  if (job.status === 'completed' || job.status === 'failed') {
    return LAST_EVENT_ID - stepsLeft(job);
  }
  const step = job.currentStep === null ? 0 : processingSteps.indexOf(job.currentStep) + 1;
  return job.progress * (processingSteps.length + 1) + step;
}

/** Makes the client list the jobs, after the watch has begun: no change is missed. */
const RESET = 'event: reset\ndata: {}\n\n';

async function watchAll(context: RouteContext): Promise<void> {
  const { request, services } = context;
  if (request.method === 'HEAD') return answerHead(context);
  const events = await beginEvents(context);
  const pending = new PendingJobs();
  const unwatch = services.changes.watchKey(keyOf(context).id, {
    changed: (jobId) => pending.changed(jobId),
    missed: () => pending.reset(),
  });
  events.ended.addEventListener('abort', () => pending.wake(), { once: true });
  try {
    while (!events.ended.aborted) {
      const jobId = pending.take();
      if (jobId === undefined) {
        await pending.waitForOne();
      } else if (jobId === 'reset') {
        await events.send(RESET);
      } else {
        const job = await watchedJob(services, jobId);
        // A job that is unknown or gone is not shown.
        if (job !== undefined) await events.send(`event: job\ndata: ${JSON.stringify(job)}\n\n`);
      }
    }
  } finally {
    unwatch();
    events.close();
  }
}

// Events that a stream of all jobs of a key will send.

/** With more pending jobs, a slow reader gets a reset instead. */
const MOST_PENDING = 1000;

/** Changed jobs, each once; bounded, so that a stalled reader costs no memory. */
export class PendingJobs {
  readonly #jobs = new Set<string>();
  #isReset = true;
  #wake: (() => void) | undefined;

  changed(jobId: string): void {
    // The reset makes the client list this job.
    if (this.#isReset) return;
    this.#jobs.add(jobId);
    if (this.#jobs.size > MOST_PENDING) this.reset();
    else this.wake();
  }

  reset(): void {
    this.#jobs.clear();
    this.#isReset = true;
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  /** At first `reset`. Undefined when nothing is pending. */
  take(): string | undefined {
    if (this.#isReset) {
      this.#isReset = false;
      return 'reset';
    }
    const [jobId] = this.#jobs;
    if (jobId !== undefined) this.#jobs.delete(jobId);
    return jobId;
  }

  /** Resolves at the next pending job or wake(). */
  waitForOne(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
