/**
 * Requests that broke off and are retried (decisions F1). The same file with the same fields joins
 * the running job. If no request comes back within a minute, the job is cancelled. Both depend on
 * one key in Redis, which lives while a request waits and for a minute after.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorBody, ErrorCode, ServiceError } from 'soundpost-contract/errors';
import { hashOf } from 'soundpost-kit/http/idempotency';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisLease } from 'soundpost-kit/redis/lease';
import { readText, withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { readTranscripts } from '../../followups/state/transcripts.ts';
import { findJob } from '../job-answer.ts';
import type { ApiServices } from '../route.ts';
import { endOrErase } from '../routes/jobs.ts';
import { idFor } from '../submission.ts';
import { pace } from './patience.ts';

/** More than a submission takes. If a process dies in one, its retry waits this long. */
const SUBMITTED_WITHIN_MS = 10_000;
const LOOK_MS = 50;

const keyOfSame = (tenant: string, same: string): string => ownKey('transcription', tenant, hashOf(same));
const failureKey = (tenant: string, same: string): string =>
  ownKey('transcription-failure', tenant, hashOf(same));
const arrivingKey = (tenant: string): string => ownKey('transcription-arriving', tenant);

/** While a request of the tenant arrives, no job that it may join is cancelled. */
export async function whileArriving<Result>(
  { redis }: ApiServices,
  tenant: string,
  receive: () => Promise<Result>,
): Promise<Result> {
  const note = (): Promise<unknown> => redis.set(arrivingKey(tenant), '1', 'PX', 2 * pace.beatMs);
  await note();
  const noting = setInterval(() => void note().catch(() => undefined), pace.beatMs);
  try {
    return await receive();
  } finally {
    clearInterval(noting);
  }
}

/** A request that waits for a job, perhaps beside others. */
interface Waiting {
  readonly jobId: string;
  /** Whether the job was there already. */
  readonly isJoined: boolean;
  /** It has its answer. */
  end(): void;
  /** It has left: a minute later the job is cancelled, if no other request waits. */
  leave(): void;
}

/**
 * @param same tells equal requests of the tenant from others
 * @param submit submits the job; its ids follow from the seed
 * @throws what `submit` throws
 */
export async function joinOrSubmit(
  services: ApiServices,
  tenant: string,
  same: string,
  submit: (seed: string) => Promise<unknown>,
): Promise<Waiting> {
  const { redis, logger } = services;
  const key = keyOfSame(tenant, same);
  const hold = (): Promise<number> => redis.pexpire(key, pace.rejoinMs + 2 * pace.beatMs);
  const { jobId, isJoined } = await oneByOne(redis, key, async () => {
    const failure = await redis.getdel(failureKey(tenant, same));
    if (failure !== null) throw errorOf(readText(LateFailure, failure));
    const known = await redis.get(key);
    if (known !== null && (await hold()) === 1 && (await isOfUse(services, known))) {
      return { jobId: known, isJoined: true };
    }
    const seed = randomUUID();
    const own = idFor('job', seed, 0);
    // First, so that a retry after a crash finds the job.
    await redis.set(key, own, 'PX', pace.rejoinMs + 2 * pace.beatMs);
    await submit(seed);
    return { jobId: own, isJoined: false };
  });
  const holding = setInterval(() => void hold().catch(() => undefined), pace.beatMs);
  return {
    jobId,
    isJoined,
    end: () => clearInterval(holding),
    leave: () => {
      clearInterval(holding);
      cancelLater(services, { tenant, key, jobId }).catch((error: unknown) =>
        logger.warn({ jobId, err: error }, 'a transcription that nobody waits for could not be cancelled'),
      );
    },
  };
}

/** Equal requests that arrive together submit one job. */
async function oneByOne<Result>(redis: Redis, key: string, work: () => Promise<Result>): Promise<Result> {
  const lease = new RedisLease(ownKey, key);
  const asking = { leaseMs: SUBMITTED_WITHIN_MS, who: randomUUID() };
  let { isTaken, holder } = await lease.take(redis, asking);
  while (!isTaken) {
    await sleep(LOOK_MS);
    ({ isTaken, holder } = await lease.take(redis, asking));
  }
  try {
    return await work();
  } finally {
    // It expires by itself.
    await lease.release(redis, holder).catch(() => undefined);
  }
}

const LateFailure = ErrorBody.extend({ code: ErrorCode, retryAfterSeconds: z.number().optional() });

function errorOf({ code, message, details, retryAfterSeconds }: z.infer<typeof LateFailure>): ServiceError {
  return new ServiceError(code, message, {
    ...(details === undefined ? {} : { details }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

/**
 * A failure that breaks off an answer looks like a lost connection. The package for Python then
 * sends the request again, and gets the failure itself.
 */
export async function keepFailure(
  { redis }: ApiServices,
  tenant: string,
  same: string,
  error: ServiceError,
): Promise<void> {
  const { retryAfterSeconds } = error;
  const failure = JSON.stringify(withEdition({ ...error.toBody(), retryAfterSeconds }));
  await redis.set(failureKey(tenant, same), failure, 'PX', pace.rejoinMs);
}

/** Not if the job has failed or was erased: the caller wants a new attempt. */
async function isOfUse(services: ApiServices, jobId: string): Promise<boolean> {
  const record = await findJob(services, jobId);
  if (record === undefined || record.erased || record.error !== null) return false;
  const transcripts = await readTranscripts(services.redis, record);
  return transcripts.every(({ state }) => state.status !== 'failed');
}

/** If the process stops before, the job ends by itself. */
async function cancelLater(
  services: ApiServices,
  { tenant, key, jobId }: { readonly tenant: string; readonly key: string; readonly jobId: string },
): Promise<void> {
  const { redis, changes } = services;
  const { beatMs, rejoinMs, mostBeats } = pace;
  const wholeMs = rejoinMs + beatMs;
  // Gone half a beat before the end, unless another request holds it.
  const lapse = (): Promise<number> => redis.pexpire(key, wholeMs - beatMs / 2);
  await lapse();
  let leftMs = wholeMs;
  for (let beats = 0; leftMs > 0; beats += 1) {
    await sleep(beatMs, undefined, { ref: false });
    if (changes.closing.aborted) return;
    leftMs -= beatMs;
    // If Redis does not answer, the next beat checks again.
    const isArriving = beats < mostBeats && (await redis.exists(arrivingKey(tenant)).catch(() => 1)) === 1;
    if (isArriving) {
      leftMs = wholeMs;
      await lapse().catch(() => undefined);
    }
  }
  // Another request may have found this job of no use, and hold the key for its own.
  if ((await redis.get(key)) === jobId) return;
  const record = await findJob(services, jobId);
  const isPending =
    record?.status !== 'completed' ||
    (await readTranscripts(redis, record)).some(({ state }) => state.status === 'pending');
  // A text that is there already stays.
  if (isPending) await endOrErase(services, jobId);
}
