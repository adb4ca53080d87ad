/** POST /v1/jobs/bulk: retries or deletes up to 100 jobs of the caller (decisions A4). */
import { BulkRequest, BulkResults } from 'soundpost-contract/answers';
import { type ErrorBody, ServiceError } from 'soundpost-contract/errors';
import { IdempotencyHeaders } from 'soundpost-contract/request-headers';
import { takeRate } from 'soundpost-kit/redis/rate';
import type { z } from 'zod';
import { type Answer, type AnswerTurn, answerOnce } from '../answer.ts';
import { findOwnJob } from '../job-answer.ts';
import { LimitReached } from '../limit-reached.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { parseRequest, readJson } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { demandAcceptable, submitJobs } from '../submission.ts';
import { deleteJob, retryRequest } from './jobs.ts';

export const bulkRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/jobs/bulk',
    access: { by: 'key', scope: 'extract', rate: 'read' },
    docs: {
      operationId: 'changeJobs',
      summary: 'Retry or delete up to 100 jobs',
      description:
        'Returns one result per job, in your order; one job’s error does not stop the others. Each retry counts as one submission. They are queued together: on 429 none was queued. Each deletion counts as one request.',
      tag: 'Jobs',
      headers: IdempotencyHeaders,
      body: { 'application/json': BulkRequest },
      answers: { 200: { description: 'The result for each job', data: BulkResults } },
      errors: [
        'INVALID_REQUEST',
        'IDEMPOTENCY_IN_PROGRESS',
        'IDEMPOTENCY_MISMATCH',
        'QUEUE_FULL',
        'UNSUPPORTED_MEDIA_TYPE',
        'PAYLOAD_TOO_LARGE',
      ],
    },
    async handle(context) {
      const body = parseRequest(BulkRequest, await readJson(context.request, context.response));
      const act = { retry: retryAll, delete: deleteAll }[body.action];
      await answerOnce(context, JSON.stringify(body), (turn) => act(context, body.jobs, turn));
    },
  },
];

type Result = z.infer<typeof BulkResults>['results'][number];

async function retryAll(context: RouteContext, jobIds: readonly string[], turn: AnswerTurn): Promise<Answer> {
  const { response, services } = context;
  const key = keyOf(context);
  const looked = await each(jobIds, async (jobId) => {
    const job = retryRequest(await findOwnJob(services, key.id, jobId), services);
    await demandAcceptable(services, key, job);
    return job;
  });
  const accepted = looked.flatMap(({ done = [] }) => done);
  const answerOf = (newJobIds: readonly string[]): Answer => {
    const added = newJobIds.values();
    return answer(
      looked.map(({ jobId, done, error }) =>
        done === undefined ? { jobId, ok: false, error } : { jobId, ok: true, newJobId: added.next().value },
      ),
    );
  };
  if (accepted.length === 0) return answerOf([]);
  return submitJobs(services, key, accepted, null, turn, (submission) => {
    setRateLimit(response, 'submit', submission.rate);
    return answerOf(submission.jobIds);
  });
}

async function deleteAll(context: RouteContext, jobIds: readonly string[]): Promise<Answer> {
  const { response, services } = context;
  const { redis, settings } = services;
  const { id } = keyOf(context);
  const limit = settings.readPerMinute;
  // The request itself has counted as one.
  const { taken, ...rate } = await takeRate(redis, 'read', id, { limit, cost: jobIds.length - 1 });
  setRateLimit(response, 'read', rate);
  if (!taken) {
    const rule = `this key may make ${limit} requests per minute; deleting ${jobIds.length} jobs would exceed that`;
    throw new LimitReached('reads', rule, rate.resetSeconds);
  }
  const ended = await each(jobIds, async (jobId) =>
    deleteJob(services, id, await findOwnJob(services, id, jobId)),
  );
  return answer(ended.map(({ jobId, done, error }) => ({ jobId, ok: done !== undefined, error })));
}

interface Outcome<Done> {
  readonly jobId: string;
  /** Undefined if it was refused. */
  readonly done?: Done;
  readonly error?: ErrorBody;
}

/** Handles each job on its own. Throws other failures, after which the request can be retried. */
function each<Done>(
  jobIds: readonly string[],
  act: (jobId: string) => Promise<Done>,
): Promise<Outcome<Done>[]> {
  return Promise.all(
    jobIds.map(async (jobId): Promise<Outcome<Done>> => {
      try {
        return { jobId, done: await act(jobId) };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return { jobId, error: error.toBody() };
      }
    }),
  );
}

function answer(results: readonly Result[]): Answer {
  return { httpStatus: 200, headers: { 'Cache-Control': 'no-store' }, data: { results } };
}
