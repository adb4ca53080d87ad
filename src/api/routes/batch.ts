/** POST /v1/batch: up to ten jobs; one bad item rejects all of them (decisions A2). */

import { AcceptedBatch, BatchState } from 'soundpost-contract/answers';
import { ServiceError } from 'soundpost-contract/errors';
import { BatchId } from 'soundpost-contract/ids';
import type { JobStatus } from 'soundpost-contract/job';
import { BatchRequest, MAX_BATCH_JOBS } from 'soundpost-contract/job-request';
import { IdempotencyHeaders } from 'soundpost-contract/request-headers';
import { findBatch } from '../../jobs/job-index.ts';
import { parseSubmission } from '../address-faults.ts';
import { answerOnce, sendData } from '../answer.ts';
import { shownProgress } from '../job-answer.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { readJson, tooManyJobs } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { idFor, submitJobs } from '../submission.ts';

export const batchRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/batch',
    access: { by: 'key', scope: 'extract', rate: 'submit' },
    docs: {
      operationId: 'submitBatch',
      summary: 'Submit up to ten jobs at once',
      description:
        'If one job is invalid, the batch is rejected and nothing is queued. The batch’s `webhook` and `voiceMessage` apply to every job without its own. After that, the jobs are independent.',
      tag: 'Batches',
      headers: IdempotencyHeaders,
      body: { 'application/json': BatchRequest },
      answers: { 202: { description: 'The jobs are queued, in your order', data: AcceptedBatch } },
      errors: [
        'INVALID_REQUEST',
        'INVALID_SOURCE',
        'INVALID_OUTPUT',
        'INVALID_WEBHOOK',
        'TOO_MANY_JOBS',
        'PAYLOAD_TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
        'IDEMPOTENCY_IN_PROGRESS',
        'IDEMPOTENCY_MISMATCH',
        'QUEUE_FULL',
      ],
    },
    handle: batch,
  },
  {
    method: 'get',
    path: '/v1/batch/:batchId',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'getBatch',
      summary: 'Read the state of a batch’s jobs',
      tag: 'Batches',
      answers: { 200: { description: 'The jobs in the order of the request', data: BatchState } },
      errors: ['BATCH_NOT_FOUND'],
    },
    handle: batchState,
  },
];

async function batch(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const body = await readJson(request, response);
  const count = countOf(body);
  if (count > MAX_BATCH_JOBS) {
    throw tooManyJobs(count);
  }
  const parsed = await parseSubmission(services, keyOf(context).id, BatchRequest, body);
  const { jobs, webhook, voiceMessage } = parsed;
  const requested = jobs.map((job, index) => ({
    path: `jobs[${index}]`,
    request: { ...job, options: { webhook, voiceMessage, ...withoutUndefined(job.options) } },
    ...(job.options.webhook === undefined ? { webhookPath: 'webhook' } : {}),
  }));
  await answerOnce(context, JSON.stringify(parsed), (turn) => {
    const batchId = idFor('batch', turn.seed, 0);
    return submitJobs(services, keyOf(context), requested, batchId, turn, ({ jobIds, rate }) => {
      setRateLimit(response, 'submit', rate);
      return {
        httpStatus: 202,
        headers: { Location: `${services.settings.publicUrl}/v1/batch/${batchId}` },
        data: {
          batchId,
          totalJobs: jobIds.length,
          jobs: jobIds.map((jobId) => ({ jobId, status: 'queued' })),
        },
        message: `${jobIds.length} job(s) queued`,
      };
    });
  });
}

async function batchState(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const batchId = BatchId.safeParse(request.params.batchId);
  const jobIds = batchId.success
    ? await findBatch(services.redis, keyOf(context).id, batchId.data)
    : undefined;
  if (jobIds === undefined) {
    throw new ServiceError('BATCH_NOT_FOUND', 'this key has no such batch');
  }
  const records = await services.jobs.readMany(jobIds);
  const jobs = records.map(({ jobId, status, ...record }) => ({
    jobId,
    status,
    ...shownProgress({ status, ...record }),
  }));
  const count = (status: JobStatus): number => jobs.filter((job) => job.status === status).length;
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, {
    batchId: batchId.data,
    totalJobs: jobIds.length,
    counts: {
      queued: count('queued'),
      processing: count('processing'),
      completed: count('completed'),
      failed: count('failed'),
    },
    jobs,
  });
}

/** Counted before the schema runs, because too many jobs have their own error code. */
function countOf(body: unknown): number {
  const jobs = typeof body === 'object' && body !== null && 'jobs' in body ? body.jobs : undefined;
  return Array.isArray(jobs) ? jobs.length : 0;
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}
