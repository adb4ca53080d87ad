/** A page of a tenant's jobs. The cursor names the last job read, so new jobs shift no page. */

import { ServiceError } from 'soundpost-contract/errors';
import type { Job, JobStatus } from 'soundpost-contract/job';
import { redisNow } from 'soundpost-kit/redis/clock';
import { type ListPosition, listJobIds } from '../jobs/job-index.ts';
import type { JobGlance } from '../jobs/job-record.ts';
import { jobAnswer } from './job-answer.ts';
import type { ApiServices } from './route.ts';

interface ListChoices {
  readonly status?: JobStatus | undefined;
  readonly q?: string | undefined;
  readonly limit: number;
}

/** Jobs read per request at most; a search with few matches continues on the next page. */
const LOOK_AT = 500;
const CURSOR_FORM = /^(\d{1,15})\.(job_[0-9a-f]{16})$/;

/** Throws INVALID_REQUEST for a malformed cursor. */
export async function listJobs(
  services: ApiServices,
  tenant: string,
  { status, q, limit }: ListChoices,
  cursor: string | undefined,
): Promise<{ jobs: Job[]; nextCursor: string | null }> {
  const filtered = status !== undefined || q !== undefined;
  const positions = await listJobIds(
    services.redis,
    tenant,
    cursor === undefined ? undefined : readCursor(cursor),
    // One more than shown, to know whether there is a next page.
    filtered ? LOOK_AT : limit + 1,
  );
  const oldestMs = redisNow() - services.settings.jobTtlSeconds * 1000;
  const found: string[] = [];
  let looked = 0;
  for await (const glance of services.jobs.glances(positions.map(({ jobId }) => jobId))) {
    looked += 1;
    const isKept = glance !== undefined && (glance.finishedAtMs ?? oldestMs) >= oldestMs;
    if (isKept && matches(glance, status, q)) {
      found.push(glance.jobId);
    }
    if (found.length === limit) {
      break;
    }
  }
  const last = positions[looked - 1];
  const more = looked < positions.length || (filtered && positions.length === LOOK_AT);
  const records = await services.jobs.readMany(found);
  const jobs = await Promise.all(records.map((record) => jobAnswer(record, services)));
  return { jobs, nextCursor: more && last !== undefined ? writeCursor(last) : null };
}

function matches(glance: JobGlance, status: JobStatus | undefined, q: string | undefined): boolean {
  if (status !== undefined && glance.status !== status) return false;
  const texts = [glance.jobId, ...glance.names];
  return q === undefined || texts.some((text) => text.toLowerCase().includes(q.toLowerCase()));
}

function writeCursor({ createdAtMs, jobId }: ListPosition): string {
  return Buffer.from(`${createdAtMs}.${jobId}`).toString('base64url');
}

function readCursor(cursor: string): ListPosition {
  const [, createdAtMs, jobId] = CURSOR_FORM.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (createdAtMs === undefined || jobId === undefined) {
    throw new ServiceError('INVALID_REQUEST', 'the request is not valid', {
      details: 'cursor: must be the nextCursor of an earlier page',
    });
  }
  return { createdAtMs: Number(createdAtMs), jobId };
}
