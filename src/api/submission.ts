/** Accepts jobs: checks what a schema cannot, then queues all of them or none. */

import { createHash, randomUUID } from 'node:crypto';
import { ServiceError } from 'soundpost-contract/errors';
import type { BatchJobRequest, VoiceMessageRequest } from 'soundpost-contract/job-request';
import { transcriptsOf } from 'soundpost-contract/output-request';
import { RATE_WINDOW_SECONDS, type RateState } from 'soundpost-kit/redis/rate';
import type { GatewayAdapter } from '../followups/gateways/adapter.ts';
import { gatewayAdapters } from '../followups/gateways/adapters.ts';
import { sealDestinations } from '../jobs/destinations.ts';
import { saveBatch } from '../jobs/job-index.ts';
import type { NewJob } from '../jobs/job-queue.ts';
import type { Outlook } from '../jobs/outlook.ts';
import type { Reservation } from '../jobs/reservation.ts';
import { sealSource } from '../jobs/sources.ts';
import type { ApiKey } from '../jobs/tenants/api-keys.ts';
import { DAY_SECONDS, spendTranscript } from '../jobs/transcript-minutes.ts';
import { holdUpload } from '../jobs/uploads/record.ts';
import {
  checkSource,
  destinationFaults,
  faultOf,
  transcriptFaults,
  webhookFaults,
  within,
} from './address-faults.ts';
import type { Answer, AnswerTurn } from './answer.ts';
import { LimitReached } from './limit-reached.ts';
import { type Fault, faultsError } from './request.ts';
import type { ApiServices } from './route.ts';

export interface Submission {
  readonly jobIds: readonly string[];
  readonly rate: RateState;
  readonly outlook: Outlook;
}

/** @param path where the job stands: `` for a single one, `jobs[3]` in a batch */
export interface RequestedJob {
  readonly request: BatchJobRequest;
  readonly path: string;
  /** The field with the webhook, if it is not the job's own. */
  readonly webhookPath?: string;
  /** The failed job that it is tried instead of. */
  readonly retryOf?: string;
}

/**
 * @param turn its seed: ids follow from it
 * @param answerOf stored by the script that confirms the jobs
 * Throws INVALID_SOURCE, INVALID_WEBHOOK, FORBIDDEN, RATE_LIMITED, QUEUE_FULL, or what {@link
 * JobQueue.submit} throws; then no job starts.
 */
export async function submitJobs(
  services: ApiServices,
  key: ApiKey,
  requested: readonly RequestedJob[],
  batchId: string | null,
  { seed, keep }: AnswerTurn,
  answerOf: (submission: Submission) => Answer,
): Promise<Answer> {
  const checked = await Promise.all(requested.map((job) => checkJob(services, key, job)));
  const faults = checked.flatMap((job) => job.faults);
  if (faults.length > 0) {
    // Jobs of a batch share its webhook: report its fault once.
    throw faultsError([...new Map(faults.map((fault) => [fault.path, fault])).values()]);
  }
  for (const { request } of requested) {
    demandScopes(key, request);
  }
  await demandTranscriptMinutes(services, key.id, requested);
  const jobs = requested.map(({ request, retryOf = null }, index): NewJob => {
    const source = checked[index]?.source;
    if (source === undefined || 'message' in source) {
      throw new Error('a faulty source was not refused');
    }
    // The other jobs of the request may differ in a retry.
    const jobId =
      retryOf === null ? idFor('job', seed, index) : idFor('job', seed && `${seed}:${retryOf}`, 0);
    return {
      jobId,
      payload: {
        version: 1,
        tenant: key.id,
        source: sealSource(services.sealer, jobId, source),
        ...sealDestinations(services.sealer, jobId, request),
        options: request.options,
        batchId,
        retryOf,
      },
    };
  });
  await holdSources(services, jobs);
  const jobIds = jobs.map(({ jobId }) => jobId);
  const answer = ({ rate, outlook }: Omit<Submission, 'jobIds'>) => answerOf({ jobIds, rate, outlook });
  const reservation = await services.jobs.submit(key.id, jobs, {
    repeated: seed !== undefined,
    answer: (reserved) => keep(answer(reserved)),
    ...(batchId !== null && {
      alongside: () => saveBatch(services.redis, key.id, batchId, jobIds, services.settings.jobTtlSeconds),
    }),
  });
  if (reservation.outcome !== 'reserved') {
    throw refusalOf(reservation, jobs.length);
  }
  return answer(reservation);
}

async function checkJob(
  services: ApiServices,
  key: ApiKey,
  { request, path, webhookPath = within(path, 'options.webhook') }: RequestedJob,
) {
  const [source, ...ofAddresses] = await Promise.all([
    checkSource(services, key.id, request.source, path),
    webhookFaults(services, request.options.webhook, webhookPath),
    destinationFaults(services, request, path),
  ]);
  const faults = [
    ...faultOf(source),
    ...transcriptFaults(services, request, path),
    ...voiceFaults(services.settings, request.options.voiceMessage, within(path, 'options.voiceMessage')),
    ...ofAddresses.flat(),
  ];
  return { source, faults };
}

/** Throws what {@link submitJobs} would refuse this job for, whatever is submitted with it. */
export async function demandAcceptable(services: ApiServices, key: ApiKey, job: RequestedJob): Promise<void> {
  const { faults } = await checkJob(services, key, job);
  if (faults.length > 0) throw faultsError(faults);
  demandScopes(key, job.request);
}

/** Keeps uploads until their jobs end, even past expiry. Throws INVALID_SOURCE if expired. */
async function holdSources({ redis }: ApiServices, jobs: readonly NewJob[]): Promise<void> {
  for (const { jobId, payload } of jobs) {
    if (payload.source.type === 'upload' && !(await holdUpload(redis, payload.source.file, jobId))) {
      throw new ServiceError('INVALID_SOURCE', 'the upload has expired');
    }
  }
}

function demandScopes(key: ApiKey, { options, ...asked }: BatchJobRequest): void {
  if (transcriptsOf(asked).length > 0 && !key.scopes.includes('transcribe')) {
    throw new ServiceError('FORBIDDEN', 'a transcript needs a key with the scope transcribe');
  }
  if (options.priority === 'high' && !key.scopes.includes('priority')) {
    throw new ServiceError('FORBIDDEN', 'priority high needs a key with the scope priority');
  }
  if (options.voiceMessage === undefined) {
    return;
  }
  if (!key.scopes.includes('voice')) {
    throw new ServiceError('FORBIDDEN', 'a voice message needs a key with the scope voice');
  }
  demandInstance(key, options.voiceMessage);
}

/** Throws RATE_LIMITED when nothing of the key's day is left; how long the audio is shows later. */
async function demandTranscriptMinutes(
  { redis, settings: { transcriptMinutesPerDay } }: ApiServices,
  tenant: string,
  requested: readonly RequestedJob[],
): Promise<void> {
  const wantsOne = requested.some(({ request }) => transcriptsOf(request).length > 0);
  if (transcriptMinutesPerDay === undefined || !wantsOne) return;
  const state = await spendTranscript(redis, tenant, transcriptMinutesPerDay);
  if (state.remaining > 0) return;
  throw new LimitReached(
    'transcript_minutes',
    `this key may transcribe ${transcriptMinutesPerDay} minutes of audio per day; remove the transcripts, or wait`,
    state.resetSeconds,
    { policy: 'transcripts', state, windowSeconds: DAY_SECONDS },
  );
}

/** Of the fields that the configured gateway cannot do. @param path of the request, `` for none */
export function voiceFaults(
  { gatewayKind }: Pick<ApiServices['settings'], 'gatewayKind'>,
  request: VoiceMessageRequest | undefined,
  path: string,
): Fault[] {
  const { cannot = [] }: GatewayAdapter = gatewayAdapters[gatewayKind];
  return cannot
    .filter(({ isAsked }) => request !== undefined && isAsked(request))
    .map(({ field, why }) => ({
      code: 'INVALID_REQUEST',
      path: within(path, field),
      message: `must not be given: ${why}`,
    }));
}

/** Throws FORBIDDEN when the key lacks the instance. */
export function demandInstance(key: ApiKey, { instance }: VoiceMessageRequest): void {
  if (!key.instances.includes('*') && !key.instances.includes(instance)) {
    throw new ServiceError('FORBIDDEN', 'this key may not use the instance of voiceMessage');
  }
}

const RETRY_UNFINISHED_SECONDS = 10;
const RETRY_QUEUE_FULL_SECONDS = 5;

function refusalOf(reservation: Exclude<Reservation, { outcome: 'reserved' }>, count: number): ServiceError {
  const { outcome, rate } = reservation;
  switch (outcome) {
    case 'rate-limited':
      return new LimitReached(
        'submissions',
        `this key may submit ${rate.limit} jobs per minute; ${count} more would exceed that`,
        rate.resetSeconds,
      );
    case 'too-many-bytes':
      return new LimitReached(
        'record_bytes',
        `this key may submit ${rate.limit} bytes of job records per minute; send smaller requests, or wait`,
        rate.resetSeconds,
        { policy: 'records', state: rate, windowSeconds: RATE_WINDOW_SECONDS },
      );
    case 'too-many-unfinished':
      return new LimitReached(
        'unfinished_jobs',
        'this key has too many unfinished jobs; wait for some of them to end',
        RETRY_UNFINISHED_SECONDS,
      );
    case 'queue-full':
      return new ServiceError('QUEUE_FULL', 'the job queue is full; try again in a few seconds', {
        retryAfterSeconds: RETRY_QUEUE_FULL_SECONDS,
      });
  }
}

// Ids of new jobs and batches.

/** The n-th id of a submission: from the seed of its idempotency key, or random. */
export function idFor(prefix: 'job' | 'batch', seed: string | undefined, index: number): string {
  const hex =
    seed === undefined
      ? randomHex()
      : createHash('sha256').update(`${seed}:${prefix}:${index}`).digest('hex').slice(0, 16);
  return `${prefix}_${hex}`;
}

/** 64 random bits of a UUID (RFC 9562, 5.4): pooled, at a tenth of the cost of randomBytes. */
function randomHex(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(-8);
}
