/** An answer that is held open as Server-Sent Events (WHATWG HTML, "Server-sent events"). */
import { once } from 'node:events';
import type { Job } from 'soundpost-contract/job';
import { openStream } from './event-streams.ts';
import { findJob, jobAnswer } from './job-answer.ts';
import { type ApiServices, keyOf, type RouteContext } from './route.ts';

const HEARTBEAT_MS = 15_000;

const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Proxies of the nginx kind hold answers back otherwise.
  'X-Accel-Buffering': 'no',
};

interface EventAnswer {
  /** Aborted when nobody may or can read any more: the caller has gone, its key was revoked, or the process stops. */
  readonly ended: AbortSignal;
  /** Resolves when there is room for the next event, so that nothing piles up for a slow reader; also at the end. */
  send(event: string): Promise<void>;
  close(): void;
}

/** Held open a HEAD would block whatever comes next on the connection, though its answer is complete. */
export function answerHead({ response }: RouteContext): void {
  response.status(200).set(STREAM_HEADERS).end();
}

/**
 * Begins the answer; from then on it carries a comment each 15 s. The caller closes it.
 * @throws ServiceError RATE_LIMITED when the key has as many streams open as it may have
 */
export async function beginEvents(context: RouteContext): Promise<EventAnswer> {
  const { response, services } = context;
  const { id } = keyOf(context);
  const { redis, settings, keys, changes } = services;
  const stream = await openStream(redis, id, settings.eventStreamsPerKey);
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  response.once('close', leave);
  // Whoever has gone while Redis was asked is told of by no event.
  if (response.closed) leave();
  response.status(200).set(STREAM_HEADERS);
  const unwatch = changes.watchRevocation(id, leave);
  const heartbeat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(':\n\n');
    stream.renew();
    // The message that told of a revocation may have been lost; and a secret that was replaced ends after its day.
    keys.authenticate(context.request.get('x-api-key') ?? '').then(
      (key) => key === undefined && leave(),
      () => undefined,
    );
  }, HEARTBEAT_MS);
  const ended = AbortSignal.any([changes.closing, leaving.signal]);
  return {
    ended,
    async send(event) {
      // A stream that begins while the server stops still tells the state of now.
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

/** As GET /v1/jobs/{jobId} gives it now; all who ask at the same time share one reading. */
export function watchedJob(services: ApiServices, jobId: string): Promise<Job | undefined> {
  return services.watchedJobs.read(jobId, async () => {
    const record = await findJob(services, jobId);
    return record && (await jobAnswer(record, services));
  });
}
