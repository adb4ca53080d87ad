/**
 * A page of a tenant's jobs. The cursor names the last job looked at, so new jobs shift no page.
 */

import { ServiceError } from 'soundpost-contract/errors';
import type { Job, JobStatus } from 'soundpost-contract/job';
import {
  dropMissing,
  fileAs,
  findBatch,
  givenListing,
  type JobListing,
  type ListPosition,
  listing,
  positionsIn,
  type TimeSpan,
} from '../jobs/job-index.ts';
import type { JobGlance, JobRecord } from '../jobs/job-record.ts';
import { isTooOld, jobAnswer } from './job-answer.ts';
import type { ApiServices } from './route.ts';

interface ListChoices extends TimeSpan {
  readonly status?: JobStatus | undefined;
  readonly q?: string | undefined;
  readonly batch?: string | undefined;
  readonly limit: number;
}

interface JobPage {
  readonly jobs: Job[];
  readonly nextCursor: string | null;
  readonly total?: number;
  readonly searchedUntil?: string | null;
}

/** Jobs that a search looks at in one request. */
const SEARCH_AMONG = 5000;
/** Jobs read at the same time. */
const READ_AT_ONCE = 500;
const CURSOR_FORM = /^(\d{1,15})\.(job_[0-9a-f]{16})$/;

/** Throws INVALID_REQUEST for a malformed cursor. */
export async function listJobs(
  services: ApiServices,
  tenant: string,
  choices: ListChoices,
  cursor: string | undefined,
): Promise<JobPage> {
  const { q, limit } = choices;
  const listed = await listingOf(services, tenant, choices);
  const found: JobRecord[] = [];
  let last = cursor === undefined ? undefined : readCursor(cursor);
  let looked = 0;
  let next: ListPosition | undefined;
  for await (const { position, record } of recordsOf(services, tenant, listed, choices, last)) {
    // Except in a search, the next page begins with a job: a missing record does not start one.
    const isFull = found.length === limit && (record !== undefined || q !== undefined);
    if (isFull || (q !== undefined && looked === SEARCH_AMONG)) {
      next = last;
      break;
    }
    last = position;
    looked += 1;
    if (record !== undefined) found.push(record);
  }
  const jobs = await Promise.all(found.map((record) => jobAnswer(record, services)));
  const nextCursor = next === undefined ? null : writeCursor(next);
  if (q === undefined) return { jobs, nextCursor, total: await listed.total() };
  return { jobs, nextCursor, searchedUntil: next ? new Date(next.createdAtMs).toISOString() : null };
}

async function listingOf(
  { redis }: ApiServices,
  tenant: string,
  { status, batch, ...span }: ListChoices,
): Promise<JobListing> {
  if (batch === undefined) return listing(redis, tenant, status, span);
  const jobIds = (await findBatch(redis, tenant, batch)) ?? [];
  return givenListing(await positionsIn(redis, tenant, jobIds), span);
}

interface Looked {
  readonly position: ListPosition;
  /** Undefined for a job that has no record any more, or is not looked for. */
  readonly record: JobRecord | undefined;
}

async function* recordsOf(
  services: ApiServices,
  tenant: string,
  listed: JobListing,
  { status, q, limit }: ListChoices,
  after: ListPosition | undefined,
): AsyncGenerator<Looked> {
  let last = after;
  for (let count = q === undefined ? limit + 1 : READ_AT_ONCE; ; count = READ_AT_ONCE) {
    const positions = await listed.next(last, count);
    const wanted = q === undefined ? positions : await matching(services, positions, q);
    const records = await readJobs(services, tenant, wanted);
    for (const position of positions) {
      const record = records.get(position.jobId);
      yield { position, record: record && (await asListed(services, tenant, position, record, status)) };
    }
    if (positions.length < count) return;
    last = positions.at(-1);
  }
}

async function readJobs(
  { redis, jobs }: ApiServices,
  tenant: string,
  wanted: readonly ListPosition[],
): Promise<ReadonlyMap<string, JobRecord>> {
  const records = await jobs.readMany(wanted.map(({ jobId }) => jobId));
  const found = new Map(records.map((record) => [record.jobId, record]));
  const missing = wanted.filter(({ jobId }) => !found.has(jobId));
  if (missing.length > 0) await dropMissing(redis, tenant, missing);
  return found;
}

/** Undefined for a job to leave out. A job in the index of another state is moved. */
async function asListed(
  services: ApiServices,
  tenant: string,
  position: ListPosition,
  record: JobRecord,
  status: JobStatus | undefined,
): Promise<JobRecord | undefined> {
  const isWanted = status === undefined || record.status === status;
  if (!isWanted || record.unreadable !== undefined) {
    await fileAs(services.redis, tenant, position, record.status);
  }
  if (!isWanted || isTooOld(services, record)) return undefined;
  // When one was submitted that cannot be read, only the index knows.
  return record.unreadable === undefined ? record : { ...record, createdAtMs: position.createdAtMs };
}

async function matching(
  { jobs }: ApiServices,
  positions: readonly ListPosition[],
  q: string,
): Promise<ListPosition[]> {
  const found = new Set<string>();
  for await (const glance of jobs.glances(positions.map(({ jobId }) => jobId))) {
    if (glance !== undefined && matches(glance, q.toLowerCase())) found.add(glance.jobId);
  }
  return positions.filter(({ jobId }) => found.has(jobId));
}

function matches({ jobId, names }: JobGlance, lower: string): boolean {
  return [jobId, ...names].some((text) => text.toLowerCase().includes(lower));
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
