/** The job that a path names, if it is the caller's: somebody else's answers exactly as an unknown one (decisions A4). */
import { ServiceError } from 'soundpost-contract/errors';
import { JobId } from 'soundpost-contract/ids';
import { redisNow } from 'soundpost-kit/redis/clock';
import { type JobRecord, readJobRecord } from '../jobs/job-record.ts';
import type { ApiServices, RouteContext } from './route.ts';

/** The `jobId` of the path. Throws INVALID_JOB_ID. */
export function jobIdOf({ request }: RouteContext): string {
  const parsed = JobId.safeParse(request.params.jobId);
  if (!parsed.success) {
    throw new ServiceError('INVALID_JOB_ID', 'a job id is of the form job_<16 hex>');
  }
  return parsed.data;
}

/** Throws INVALID_JOB_ID or JOB_NOT_FOUND. */
export async function ownedJob(context: RouteContext): Promise<JobRecord> {
  const jobId = jobIdOf(context);
  const { services } = context;
  const record =
    context.record === undefined
      ? await findJob(services, jobId)
      : unlessOld(services, readJobRecord(jobId, context.record));
  if (record === undefined || record.payload.tenant !== context.key?.id) {
    throw jobNotFound(jobId);
  }
  return record;
}

/** The record of a job, until it is too old to be answered; removal from Redis may come later. */
export async function findJob(services: ApiServices, jobId: string): Promise<JobRecord | undefined> {
  return unlessOld(services, await services.jobs.read(jobId));
}

function unlessOld({ settings }: ApiServices, record: JobRecord | undefined): JobRecord | undefined {
  const oldestMs = redisNow() - settings.jobTtlSeconds * 1000;
  return record?.finishedAtMs != null && record.finishedAtMs < oldestMs ? undefined : record;
}

export function jobNotFound(jobId: string): ServiceError {
  return new ServiceError('JOB_NOT_FOUND', `no job ${jobId} is known`);
}

/** Whether the files of a completed job are gone or about to go. */
export function isExpired({ erased, result }: JobRecord): boolean {
  return erased || Date.parse(result?.outputFile.expiresAt ?? '') <= redisNow();
}
