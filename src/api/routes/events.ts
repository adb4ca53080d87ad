/** GET /v1/events: all jobs of a key as Server-Sent Events (decisions A4). */
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { answerHead, beginEvents, watchedJob } from '../server-sent-events.ts';

export const eventRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/events',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'watchJobs',
      summary: 'Watch all jobs of the key',
      description:
        'Server-Sent Events without an end: `event: job` with a job as GET /v1/jobs/{jobId} gives it, whenever one is new or has changed, also one that was submitted elsewhere; a comment each 15 s. `event: reset` comes first, and again when changes may have been lost: list the jobs then. Events have no `id`, since a new stream begins with `reset` anyway. A job may come twice in the same state, and several changes in a row as one. A job also changes when its voice message, a transcript or a put ends. No event tells of its webhook: ask for its deliveries.',
      tag: 'Jobs',
      answers: { 200: { description: 'The stream', content: { 'text/event-stream': 'binary' } } },
      errors: [],
    },
    handle: watch,
  },
];

/** The client lists the jobs when it gets this, after the watch has begun: so nothing falls in between. */
const RESET = 'event: reset\ndata: {}\n\n';

async function watch(context: RouteContext): Promise<void> {
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
        // What is not known yet, or not any more, is shown nowhere.
        if (job !== undefined) await events.send(`event: job\ndata: ${JSON.stringify(job)}\n\n`);
      }
    }
  } finally {
    unwatch();
    events.close();
  }
}

// What a stream of all jobs of a key is to send.

/** Of more jobs than this a reader that is too slow for them is told at once, by a reset. */
const MOST_PENDING = 1000;

/** Jobs that have changed: each once, however often it has, and never so many that a reader who stands still costs memory. */
export class PendingJobs {
  readonly #jobs = new Set<string>();
  #isReset = true;
  #wake: (() => void) | undefined;

  changed(jobId: string): void {
    // The list that follows a reset has it.
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

  /** At first `reset`. Undefined when there is nothing to send. */
  take(): string | undefined {
    if (this.#isReset) {
      this.#isReset = false;
      return 'reset';
    }
    const [jobId] = this.#jobs;
    if (jobId !== undefined) this.#jobs.delete(jobId);
    return jobId;
  }

  /** Resolves with the next that is to be sent, or when it was woken. */
  waitForOne(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
