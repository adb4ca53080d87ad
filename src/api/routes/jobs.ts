/** /v1/jobs and /v1/status: list, show, cancel, erase or retry the caller's jobs (decisions A4). */

import { AcceptedJob, JobList } from 'soundpost-contract/answers';
import { jobFailureCodes, ServiceError } from 'soundpost-contract/errors';
import { BatchId } from 'soundpost-contract/ids';
import { Job, JobStatus } from 'soundpost-contract/job';
import type { BatchJobRequest } from 'soundpost-contract/job-request';
import { SubmitHeaders } from 'soundpost-contract/request-headers';
import { z } from 'zod';
import { openDestinations } from '../../jobs/destinations.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { storageKeysOf } from '../../jobs/payloads.ts';
import { openSource, SecretsForgotten } from '../../jobs/sources.ts';
import { sendData, sendFailure } from '../answer.ts';
import { acceptedJob, findJob, jobAnswer, ownedJob } from '../job-answer.ts';
import { listJobs } from '../job-list.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { parseRequest } from '../request.ts';
import { type ApiServices, keyOf, type Route, type RouteContext } from '../route.ts';
import { type RequestedJob, submitJobs } from '../submission.ts';
import { answerJob, endedAnswer } from '../wait.ts';

const Moment = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: 'must be a time such as 2026-01-02T03:04:05Z, or a day such as 2026-01-02',
});
const DAY_MS = 24 * 60 * 60 * 1000;

/** @returns the first ms of a day, or the last */
function momentMs(text: string | undefined, end: 'first' | 'last'): number | undefined {
  if (text === undefined) return undefined;
  return Date.parse(text) + (end === 'last' && !text.includes('T') ? DAY_MS - 1 : 0);
}

const ListQuery = z.object({
  status: JobStatus.optional().meta({ description: 'Only jobs in this state' }),
  q: z
    .string()
    .max(200)
    .optional()
    .meta({ description: 'Only jobs whose id, source, file name or chosen name contains this, in any case' }),
  from: Moment.optional().meta({
    description: 'Only jobs submitted at or after this time (ISO 8601), or on or after this day (UTC)',
  }),
  to: Moment.optional().meta({ description: 'Only jobs submitted at or before this time, or day' }),
  batch: BatchId.optional().meta({ description: 'Only jobs of this batch' }),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional().meta({ description: 'nextCursor of the previous page' }),
});

export const jobRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/status/:jobId',
    access: { by: 'key', scope: 'read', rate: 'read' },
    reads: 'job',
    docs: {
      operationId: 'getStatus',
      summary: 'Read the status of a job',
      description:
        'Always returns 200 for an existing job; a failed one returns an error envelope with its own code. Poll every 2 to 5 seconds until the job is completed or failed.',
      tag: 'Jobs',
      answers: {
        200: { description: 'The job, or why it failed', data: Job, failures: jobFailureCodes },
      },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    handle: status,
  },
  {
    method: 'get',
    path: '/v1/jobs',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'listJobs',
      summary: 'List jobs, newest first',
      description:
        'A page has `limit` jobs, and `total` counts all. A search (`q`) examines 5,000 jobs per request, so its page may have fewer jobs, or none, although more follow. `searchedUntil` says how far it got. The list ends when `nextCursor` is null. A job whose record cannot be read is listed as failed with INTERNAL_ERROR; you can delete it.',
      tag: 'Jobs',
      query: ListQuery,
      answers: { 200: { description: 'A page of jobs', data: JobList } },
      errors: ['INVALID_REQUEST'],
    },
    async handle(context) {
      const { request, response, services } = context;
      const { cursor, from, to, ...query } = parseRequest(ListQuery, request.query);
      const span = { fromMs: momentMs(from, 'first'), toMs: momentMs(to, 'last') };
      const page = await listJobs(services, keyOf(context).id, { ...query, ...span }, cursor);
      response.set('Cache-Control', 'no-store');
      sendData(response, 200, page);
    },
  },
  {
    method: 'get',
    path: '/v1/jobs/:jobId',
    access: { by: 'key', scope: 'read', rate: 'read' },
    reads: 'job',
    docs: {
      operationId: 'getJob',
      summary: 'Read a job; a failed one includes its error',
      tag: 'Jobs',
      answers: { 200: { description: 'The job', data: Job } },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    async handle(context) {
      await sendJob(context, await ownedJob(context));
    },
  },
  {
    method: 'delete',
    path: '/v1/jobs/:jobId',
    access: { by: 'key', scope: 'extract', rate: 'read' },
    docs: {
      operationId: 'deleteJob',
      summary: 'Cancel an unfinished job, or erase the files of a finished one',
      description:
        'An unfinished job fails with JOB_CANCELLED and sends job.failed. The files of a finished job are erased at once; downloads then return 410. A job whose record cannot be read is removed with its files.',
      tag: 'Jobs',
      answers: { 200: { description: 'The job as it is now', data: Job } },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    handle: cancelOrErase,
  },
  {
    method: 'post',
    path: '/v1/jobs/:jobId/retry',
    access: { by: 'key', scope: 'extract', rate: 'submit' },
    docs: {
      operationId: 'retryJob',
      summary: 'Retry a failed job as a new job',
      tag: 'Jobs',
      headers: SubmitHeaders,
      answers: {
        200: endedAnswer,
        202: {
          description: 'A new job is queued; its retryOf names the old one',
          data: AcceptedJob,
          headers: {
            Location: 'The statusUrl',
            'Retry-After': 'Seconds after which asking for the status pays',
          },
        },
      },
      errors: [
        'INVALID_JOB_ID',
        'JOB_NOT_FOUND',
        'INVALID_REQUEST',
        'INVALID_SOURCE',
        'INVALID_OUTPUT',
        'INVALID_WEBHOOK',
        'IDEMPOTENCY_IN_PROGRESS',
        'IDEMPOTENCY_MISMATCH',
        'QUEUE_FULL',
      ],
    },
    handle: retry,
  },
];

async function status(context: RouteContext): Promise<void> {
  const record = await ownedJob(context);
  if (record.error === null) await sendJob(context, record);
  else sendFailure(context.response, record.error);
}

async function sendJob({ response, services }: RouteContext, record: JobRecord): Promise<void> {
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, await jobAnswer(record, services));
}

async function cancelOrErase(context: RouteContext): Promise<void> {
  const job = await ownedJob(context);
  const isRemoved = (await deleteJob(context.services, keyOf(context).id, job)) === 'removed';
  await sendJob(context, isRemoved ? job : await ownedJob(context));
}

/** @returns `removed` of a job whose record cannot be read: it is unknown from then on */
export async function deleteJob(services: ApiServices, tenant: string, job: JobRecord) {
  const { jobId, unreadable } = job;
  if (unreadable === undefined) {
    await endOrErase(services, jobId);
    return 'kept';
  }
  const keys = await services.jobs.removeUnreadable(tenant, jobId);
  await Promise.all(keys.map((key) => services.storage.remove(key)));
  return 'removed';
}

/** Cancels an unfinished job, or erases what a finished one has made. */
export async function endOrErase(services: ApiServices, jobId: string): Promise<void> {
  if ((await services.jobs.cancel(jobId)) !== 'finished') return;
  // Read now: the job may just have ended, with files that an earlier read did not show.
  const record = await findJob(services, jobId);
  if (record !== undefined) await eraseFiles(services, record);
}

async function eraseFiles({ jobs, storage }: ApiServices, { jobId, result }: JobRecord): Promise<void> {
  // Marked first, so that a concurrent download answers 410, not an error.
  await jobs.markErased(jobId);
  await Promise.all(storageKeysOf(result).map((key) => storage.remove(key)));
}

async function retry(context: RouteContext): Promise<void> {
  const { response, services } = context;
  const failed = await ownedJob(context);
  demandRetryable(failed);
  await answerJob(context, failed.jobId, (turn) => {
    const submitted = [retryRequest(failed, services)];
    return submitJobs(services, keyOf(context), submitted, null, turn, (submission) => {
      setRateLimit(response, 'submit', submission.rate);
      return acceptedJob(services.settings, submission);
    });
  });
}

function demandRetryable({ status, unreadable }: JobRecord): void {
  if (status !== 'failed') {
    throw new ServiceError('INVALID_REQUEST', `only a failed job can be retried; this one is ${status}`);
  }
  if (unreadable !== undefined) {
    throw new ServiceError('INVALID_REQUEST', 'the record of this job cannot be read; submit the job again');
  }
}

/** The new job of a failed one. Throws INVALID_REQUEST if that cannot be retried. */
export function retryRequest(failed: JobRecord, services: ApiServices): RequestedJob {
  demandRetryable(failed);
  return { request: requestOf(failed, services), path: '', retryOf: failed.jobId };
}

/** The request, as it would be submitted again. */
function requestOf({ jobId, payload }: JobRecord, { sealer }: ApiServices): BatchJobRequest {
  try {
    const source = openSource(sealer, jobId, payload.source);
    return {
      source: source.type === 'url' ? source : { type: 'upload', file: source.file },
      ...openDestinations(sealer, jobId, payload),
      options: payload.options,
    };
  } catch (error) {
    throw new ServiceError(
      'INVALID_REQUEST',
      error instanceof SecretsForgotten
        ? `it was cancelled while it waited, and then ${error.message}; submit the job again`
        : 'the destination or the headers of the source cannot be decrypted because SECRET_KEY has changed; submit the job again',
    );
  }
}
