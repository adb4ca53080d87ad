/** State of the deliveries of a job's files. */
import type { DestinationState } from 'soundpost-contract/destination';
import { outputsOf } from 'soundpost-contract/output-request';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, unlessUnreadable } from 'soundpost-kit/redis/record';
import { fetchFollowUp, isNeverBegun } from '../../jobs/bullmq-internals.ts';
import { DestinationReplay, destinationOf } from '../../jobs/destinations.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { destinationId } from '../../jobs/names.ts';
import { DestinationOutcome, filesOf } from '../../jobs/payloads.ts';
import type { TranscriptProgress } from './transcripts.ts';

interface DestinationStates {
  /** Of the job's destination, for all files that go there; undefined if none do. */
  readonly job?: DestinationState | undefined;
  /** Of each file with a destination, by its output's name. */
  readonly files: ReadonlyMap<string, DestinationState>;
}

type Progress = Pick<DestinationState, 'status' | 'error'>;

const PENDING: Progress = { status: 'pending', error: null };

/** @param transcripts of the job, whose files come last */
export async function readDestinations(
  redis: Redis,
  record: JobRecord,
  transcripts: readonly TranscriptProgress[],
): Promise<DestinationStates> {
  const { payload, result } = record;
  const files = new Map<string, DestinationState>();
  if (payload.destinations === undefined) return { files };
  const texts = transcripts.map(({ state }) => state);
  const names = [...(result === null ? [] : filesOf(result)), ...texts].map(({ name }) => name);
  const isNotMade = (name: string): boolean =>
    texts.some((text) => text.name === name && text.status === 'failed');
  const isNotMadeYet = (name: string): boolean =>
    texts.some((text) => text.name === name && text.status === 'pending');
  await Promise.all(
    names.map(async (name) => {
      if (destinationOf(payload, name) === undefined) return;
      const { replay, ...progress } = isNotMade(name)
        ? { ...NOT_MADE, replay: undefined }
        : isNotMadeYet(name)
          ? { ...PENDING, replay: undefined }
          : await readPut(redis, record.jobId, name);
      const destination = destinationOf(payload, name, replay);
      if (destination) files.set(name, { ...destination, ...progress });
    }),
  );
  const { job, outputs: own = {} } = payload.destinations;
  const isOfJob = (name: string): boolean => own[name] === undefined;
  if (job === undefined || !outputsOf(payload).some(({ name }) => isOfJob(name))) return { files };
  const { url, headers } = job;
  const ofJob = [...files].filter(([name]) => isOfJob(name));
  const progress = record.status === 'failed' ? failure('the job itself failed') : together(ofJob);
  return { job: { url, ...(headers && { headers }), ...progress }, files };
}

/** Outputs whose files are not delivered yet. */
export async function pendingNames(
  redis: Redis,
  record: JobRecord,
  transcripts: readonly TranscriptProgress[],
): Promise<string[]> {
  const { files } = await readDestinations(redis, record, transcripts);
  return [...files].flatMap(([name, { status }]) => (status === 'pending' ? [name] : []));
}

interface Put extends Progress {
  /** The latest replay. */
  readonly replay: DestinationReplay | undefined;
}

export async function readPut(redis: Redis, jobId: string, name: string): Promise<Put> {
  const id = destinationId(jobId, name);
  const stored = await fetchFollowUp(redis, 'destination', id);
  const { isThere, hasEnded, result } = stored;
  return unlessUnreadable(
    async (): Promise<Put> => {
      const replay = stored.replay === undefined ? undefined : readText(DestinationReplay, stored.replay);
      if (result === undefined) {
        if (!isThere && (await isNeverBegun(redis, 'destination', id, jobId)))
          return { ...NOT_BEGUN, replay };
        return { ...(hasEnded ? NOT_PUT : PENDING), replay };
      }
      const { replay: ended, ...progress } = readText(DestinationOutcome, result);
      // Asked for again in the moment in which it ended.
      return { ...(ended === replay?.id ? progress : PENDING), replay };
    },
    ({ message }): Put => ({ ...failure(`its result cannot be read: ${message}`), replay: undefined }),
  );
}

function failure(message: string): DestinationOutcome {
  return { status: 'failed', error: { code: 'DESTINATION_FAILED', message } };
}

/** For the file of a failed transcript. */
export const NOT_MADE = failure('the transcript could not be made');

/** For a delivery that BullMQ itself ended. */
export const NOT_PUT = failure('the file could not be put');

const NOT_BEGUN = failure(
  'the worker that ended the job knew of no destinations, or Redis has lost this one; submit the job again',
);

/** One state for all files; of several failures, the first is shown with its output's name. */
function together(files: readonly (readonly [name: string, DestinationState])[]): Progress {
  const [, only] = files[0] ?? [];
  if (files.length < 2) return only ? { status: only.status, error: only.error } : PENDING;
  const failed = files.find(([, { status }]) => status === 'failed');
  if (failed !== undefined) {
    const [name, { error }] = failed;
    return failure(`${name}: ${error?.message}`);
  }
  return files.every(([, { status }]) => status === 'completed')
    ? { status: 'completed', error: null }
    : PENDING;
}
