/** POST /v1/batch: up to ten jobs, validated whole: one bad item rejects all of them (decisions A2). */
import { randomBytes } from 'node:crypto';
import { AcceptedBatch } from '../../contract/answers.ts';
import { BatchRequest, MAX_BATCH_JOBS } from '../../contract/job-request.ts';
import { IdempotencyHeaders } from '../../contract/request-headers.ts';
import { sendData } from '../answer.ts';
import { readJson } from '../json-body.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { parseRequest, tooManyJobs } from '../request-faults.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { submitJobs } from '../submission.ts';

export const batchRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/batch',
    access: { by: 'key', scope: 'extract', rate: 'submit' },
    docs: {
      operationId: 'submitBatch',
      summary: 'Submit up to ten jobs at once',
      description:
        'The batch is checked whole: one bad job rejects it and nothing is queued. Afterwards each job ends for itself. A `webhook` or `voiceMessage` of the batch holds for every job that has none of its own.',
      tag: 'Batches',
      headers: IdempotencyHeaders,
      body: { 'application/json': BatchRequest },
      answers: { 202: { description: 'The jobs are queued, in the order given', data: AcceptedBatch } },
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
];

async function batch(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const body = await readJson(request, response);
  const count = countOf(body);
  if (count > MAX_BATCH_JOBS) {
    throw tooManyJobs(count);
  }
  const { jobs, webhook, voiceMessage } = parseRequest(BatchRequest, body);
  const requested = jobs.map((job, index) => ({
    path: `jobs[${index}]`,
    request: { ...job, options: { webhook, voiceMessage, ...withoutUndefined(job.options) } },
  }));
  const batchId = `batch_${randomBytes(8).toString('hex')}`;
  const { jobIds, rate } = await submitJobs(services, keyOf(context), requested, { batchId, retryOf: null });
  setRateLimit(response, 'submit', rate);
  sendData(
    response,
    202,
    { batchId, totalJobs: jobIds.length, jobs: jobIds.map((jobId) => ({ jobId, status: 'queued' })) },
    `${jobIds.length} jobs were queued`,
  );
}

/** Known before the schema looks, since too many jobs have a code of their own. */
function countOf(body: unknown): number {
  const jobs = typeof body === 'object' && body !== null && 'jobs' in body ? body.jobs : undefined;
  return Array.isArray(jobs) ? jobs.length : 0;
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}
