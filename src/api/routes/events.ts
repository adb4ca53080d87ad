/** GET /v1/events: all jobs of a key as Server-Sent Events (decisions A4). */
import { PendingJobs } from '../pending-jobs.ts';
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
