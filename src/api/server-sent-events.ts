/** A held-open answer of Server-Sent Events (WHATWG HTML, "Server-sent events"). */
import { once } from 'node:events';
import type { Job } from 'soundpost-contract/job';
import { openStream } from './event-streams.ts';
import { findJob, jobAnswer } from './job-answer.ts';
import { isStillAdmitted } from './middleware/authentication.ts';
import { type ApiServices, keyOf, type RouteContext } from './route.ts';

const HEARTBEAT_MS = 15_000;

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Without it, proxies such as nginx buffer the answer.
  'X-Accel-Buffering': 'no',
};

interface EventAnswer {
  /** Aborted when the caller disconnects, its key is revoked, or the process stops. */
  readonly ended: AbortSignal;
  /** Resolves when there is room for the next event, or at the end: nothing piles up. */
  send(event: string): Promise<void>;
  close(): void;
}

/** A HEAD that is held open would block the next request on its connection. */
export function answerHead({ response }: RouteContext): void {
  response.status(200).set(STREAM_HEADERS).end();
}

/**
 * Begins the answer, with a comment every 15 s. The caller closes it.
 * @throws ServiceError RATE_LIMITED when the key has reached its limit of streams
 */
export async function beginEvents(context: RouteContext): Promise<EventAnswer> {
  const { response, services } = context;
  const { id } = keyOf(context);
  const { redis, settings, changes } = services;
  const stream = await openStream(redis, 'event_streams', id, settings.eventStreamsPerKey);
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  response.once('close', leave);
  // No event is sent for a client that disconnected during the Redis call.
  if (response.closed) leave();
  response.status(200).set(STREAM_HEADERS);
  const unwatch = changes.watchRevocation(id, leave);
  const heartbeat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(':\n\n');
    stream.renew();
    // The revocation message can be lost; and a replaced secret or a session expires.
    isStillAdmitted(context).then(
      (isAdmitted) => isAdmitted || leave(),
      () => undefined,
    );
  }, HEARTBEAT_MS);
  const ended = AbortSignal.any([changes.closing, leaving.signal]);
  return {
    ended,
    async send(event) {
      // A stream that begins while the server stops still sends the current state.
      if (leaving.signal.aborted || response.write(event) || ended.aborted) return;
      await once(response, 'drain', { signal: ended }).catch(() => undefined);
    },
    close() {
      clearInterval(heartbeat);
      unwatch();
      stream.close();
      response.end();
    },
  };
}

/** The answer of GET /v1/jobs/{jobId}; concurrent callers share one read. */
export function watchedJob(services: ApiServices, jobId: string): Promise<Job | undefined> {
  return services.watchedJobs.read(jobId, async () => {
    const record = await findJob(services, jobId);
    return record && (await jobAnswer(record, services));
  });
}
