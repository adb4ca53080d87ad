/**
 * Requests that were broken off and sent again (decisions F1): the same file with the same fields
 * joins the job that runs, and a job that nobody comes back for within a minute is cancelled. Both
 * hang on one key in Redis, which lives while a request waits and for a minute after.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashOf } from 'soundpost-kit/http/idempotency';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readTranscripts } from '../../followups/state/transcripts.ts';
import { findJob } from '../job-answer.ts';
import type { ApiServices } from '../route.ts';
import { endOrErase } from '../routes/jobs.ts';
import { idFor } from '../submission.ts';
import { pace } from './patience.ts';

/** Beats for which an arriving file delays the cancelling, 30 minutes. */
const MOST_BEATS = 120;

const arrivingKey = (tenant: string): string => ownKey('transcription-arriving', tenant);

/** A request of the tenant arrives: what it may join is not cancelled meanwhile. */
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
  const key = ownKey('transcription', tenant, hashOf(same));
  const hold = (): Promise<number> => redis.pexpire(key, pace.rejoinMs + 2 * pace.beatMs);
  const known = await redis.get(key);
  const isJoined = known !== null && (await hold()) === 1 && (await isOfUse(services, known));
  const seed = randomUUID();
  const jobId = isJoined ? known : idFor('job', seed, 0);
  if (!isJoined) {
    // First: a repetition after a crash finds the job.
    await redis.set(key, jobId, 'PX', pace.rejoinMs + 2 * pace.beatMs);
    await submit(seed);
  }
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

/** Not of one that has failed: the caller wants another try. */
async function isOfUse(services: ApiServices, jobId: string): Promise<boolean> {
  const record = await findJob(services, jobId);
  if (record === undefined || record.error !== null) return false;
  const transcripts = await readTranscripts(services.redis, record);
  return transcripts.every(({ state }) => state.status !== 'failed');
}

/** If the process stops before, the job ends by itself. */
async function cancelLater(
  services: ApiServices,
  { tenant, key, jobId }: { readonly tenant: string; readonly key: string; readonly jobId: string },
): Promise<void> {
  const { redis, changes } = services;
  const { beatMs, rejoinMs } = pace;
  const wholeMs = rejoinMs + beatMs;
  // Gone half a beat before the end, unless another request holds it.
  const lapse = (): Promise<number> => redis.pexpire(key, wholeMs - beatMs / 2);
  await lapse();
  let leftMs = wholeMs;
  for (let beats = 0; leftMs > 0; beats += 1) {
    await sleep(beatMs, undefined, { ref: false });
    if (changes.closing.aborted) return;
    leftMs -= beatMs;
    if (beats < MOST_BEATS && (await redis.exists(arrivingKey(tenant))) === 1) {
      leftMs = wholeMs;
      await lapse();
    }
  }
  if ((await redis.get(key)) !== null) return;
  const record = await findJob(services, jobId);
  const isPending =
    record?.status !== 'completed' ||
    (await readTranscripts(redis, record)).some(({ state }) => state.status === 'pending');
  // A text that is there already stays.
  if (isPending) await endOrErase(services, jobId);
}
