/**
 * The job that a path names, as its owner sees it (audio-extraction.md "Job", decisions A4).
 * Somebody else's job is answered like an unknown one.
 */

import type { AcceptedJob } from 'soundpost-contract/answers';
import { ServiceError } from 'soundpost-contract/errors';
import { JobId } from 'soundpost-contract/ids';
import { type Job, stepsOf } from 'soundpost-contract/job';
import { outputsOf } from 'soundpost-contract/output-request';
import { redisNow } from 'soundpost-kit/redis/clock';
import { readDestinations } from '../followups/state/destinations.ts';
import { readTranscripts, type TranscriptProgress } from '../followups/state/transcripts.ts';
import { readVoiceState } from '../followups/state/voice.ts';
import { fileAs, positionsIn } from '../jobs/job-index.ts';
import { type JobRecord, readJobRecord } from '../jobs/job-record.ts';
import type { Outlook } from '../jobs/outlook.ts';
import { filesView, optionsView, sourceView, transcriptFileView } from '../jobs/public-view.ts';
import { readUpload } from '../jobs/uploads/record.ts';
import type { Answer } from './answer.ts';
import type { ApiServices, ApiSettings, RouteContext } from './route.ts';
import type { Submission } from './submission.ts';

/** The `jobId` of the path. Throws INVALID_JOB_ID. */
export function jobIdOf({ request }: RouteContext): string {
  const parsed = JobId.safeParse(request.params.jobId);
  if (!parsed.success) {
    throw new ServiceError('INVALID_JOB_ID', 'a job id has the form job_<16 hex>');
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
  const own = record && (await ownRecord(services, record, context.key?.id ?? ''));
  if (own === undefined) throw jobNotFound(jobId);
  return own;
}

/** For ids that no path names. Throws JOB_NOT_FOUND. */
export async function findOwnJob(services: ApiServices, tenant: string, jobId: string): Promise<JobRecord> {
  const record = await findJob(services, jobId);
  const own = record && (await ownRecord(services, record, tenant));
  if (own === undefined) throw jobNotFound(jobId);
  return own;
}

/** Undefined for another tenant's. Whose a record is that cannot be read, only the index tells. */
async function ownRecord(
  { redis }: ApiServices,
  record: JobRecord,
  tenant: string,
): Promise<JobRecord | undefined> {
  if (record.unreadable === undefined) return record.payload.tenant === tenant ? record : undefined;
  const [position] = await positionsIn(redis, tenant, [record.jobId]);
  if (position === undefined) return undefined;
  await fileAs(redis, tenant, position, record.status);
  return { ...record, createdAtMs: position.createdAtMs };
}

/** The job's record, unless it has expired; Redis may remove it later. */
export async function findJob(services: ApiServices, jobId: string): Promise<JobRecord | undefined> {
  return unlessOld(services, await services.jobs.read(jobId));
}

function unlessOld(services: ApiServices, record: JobRecord | undefined): JobRecord | undefined {
  return record && isTooOld(services, record) ? undefined : record;
}

/** Whether an ended job is too old to show. */
export function isTooOld({ settings }: ApiServices, { finishedAtMs }: JobRecord): boolean {
  return finishedAtMs !== null && finishedAtMs < redisNow() - settings.jobTtlSeconds * 1000;
}

export function jobNotFound(jobId: string): ServiceError {
  return new ServiceError('JOB_NOT_FOUND', `this key has no job ${jobId}`);
}

/** Whether a completed job's files are deleted or about to be. */
export function isExpired({ erased, result }: JobRecord): boolean {
  return erased || Date.parse(result?.outputFile?.expiresAt ?? '') <= redisNow();
}

export async function jobAnswer(
  record: JobRecord,
  { redis, followUps, signer }: Pick<ApiServices, 'redis' | 'followUps' | 'signer'>,
): Promise<Job> {
  const { payload, progress, result } = record;
  // A single round trip for a job without follow-ups.
  const [webhook, voiceMessage, { transcripts, destinations }, upload] = await Promise.all([
    payload.options.webhook === undefined ? undefined : followUps.webhookState(record.jobId),
    readVoiceState(redis, record),
    readFollowing(redis, record),
    failedUpload(redis, record),
  ]);
  return {
    jobId: record.jobId,
    status: record.status,
    ...shownProgress(record),
    ...(record.status === 'processing'
      ? { estimatedTimeRemaining: progress?.estimatedTimeRemaining ?? 0 }
      : {}),
    inputFile: result?.inputFile ?? progress?.inputFile ?? upload,
    ...shownFiles(record, transcripts, destinations, signer),
    warnings: result?.warnings ?? [],
    ...(payload.output === undefined ? { outputs: payload.outputs } : { output: payload.output }),
    options: optionsView(payload),
    source: record.unreadable === undefined ? sourceView(payload) : { type: 'url' },
    batchId: payload.batchId,
    retryOf: payload.retryOf,
    createdAt: iso(record.createdAtMs),
    startedAt: record.startedAtMs === null ? null : iso(record.startedAtMs),
    finishedAt: record.finishedAtMs === null ? null : iso(record.finishedAtMs),
    ...(voiceMessage ? { voiceMessage } : {}),
    ...(destinations.job ? { destination: destinations.job } : {}),
    ...(transcripts.length > 0 ? { transcripts: transcripts.map(({ state }) => state) } : {}),
    ...(webhook ? { webhook } : {}),
    ...(record.error ? { error: record.error } : {}),
  };
}

async function readFollowing(redis: ApiServices['redis'], record: JobRecord) {
  const transcripts = await readTranscripts(redis, record);
  return { transcripts, destinations: await readDestinations(redis, record, transcripts) };
}

/** In the order of the request; a transcript is included once it exists. */
function shownFiles(
  { jobId, payload, result, erased }: JobRecord,
  transcripts: readonly TranscriptProgress[],
  { files: puts }: Awaited<ReturnType<typeof readDestinations>>,
  signer: ApiServices['signer'],
): Pick<Job, 'outputFile' | 'outputFiles'> {
  if (result === null) return { outputFile: null, outputFiles: [] };
  const placed = <File extends { readonly name: string }>(file: File): File => {
    const destination = puts.get(file.name);
    return destination ? { ...file, destination } : file;
  };
  const { outputFile, outputFiles } = filesView(jobId, result, signer, erased);
  const texts = transcripts.flatMap(({ file }) => file ?? []);
  const order = outputsOf(payload).map(({ name }) => name);
  const all = [...outputFiles, ...texts.map((file) => transcriptFileView(jobId, file, signer, erased))];
  return {
    outputFile: outputFile && placed(outputFile),
    outputFiles: all.sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name)).map(placed),
  };
}

/** Input of a job that failed before its analysis; the size only while the upload is kept. */
async function failedUpload(redis: ApiServices['redis'], record: JobRecord): Promise<Job['inputFile']> {
  const { payload, status, progress } = record;
  if (payload.source.type !== 'upload' || status !== 'failed' || progress?.inputFile) {
    return null;
  }
  const { file, name } = payload.source;
  const upload = await readUpload(redis, payload.tenant, file);
  return { name, size: upload?.sizeBytes ?? null, duration: null, format: null, tracks: [] };
}

/** Only a completed job shows 100; a failed one keeps the step in which it failed. */
export function shownProgress({
  payload,
  status,
  progress,
}: Pick<JobRecord, 'payload' | 'status' | 'progress'>): Pick<Job, 'progress' | 'currentStep'> {
  if (status === 'completed') {
    return { progress: 100, currentStep: stepsOf(payload).at(-1) ?? null };
  }
  const firstStep = status === 'processing' ? 'downloading_video' : null;
  return { progress: progress?.progress ?? 0, currentStep: progress?.currentStep ?? firstStep };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

// Answer for a submission of a single job (decisions A4).

export function acceptedJob(settings: ApiSettings, { jobIds: [jobId = ''], outlook }: Submission): Answer {
  const estimatedTime = estimateOf(outlook, settings);
  const statusUrl = `${settings.publicUrl}/v1/status/${jobId}`;
  const data: AcceptedJob = { jobId, status: 'queued', estimatedTime, statusUrl };
  return {
    httpStatus: 202,
    headers: { Location: statusUrl, 'Retry-After': String(Math.max(1, Math.ceil(estimatedTime))) },
    data,
  };
}

// Estimates a job's duration from its position in the fair order (decision 0004-fairness.md).

/** Used until a job has been measured. */
const FIRST_GUESS_SECONDS = 10;

/**
 * Seconds, rounded to a tenth. The number of workers follows from the running jobs: with jobs
 * waiting, each worker is full. All are assumed to have this process's settings.
 */
export function estimateOf(
  { meanSeconds = FIRST_GUESS_SECONDS, meanEncodingSeconds = meanSeconds, inFront, running }: Outlook,
  { workerConcurrency, downloadsAhead }: Pick<ApiSettings, 'workerConcurrency' | 'downloadsAhead'>,
): number {
  const workers = Math.max(1, Math.ceil(running / (workerConcurrency + downloadsAhead)));
  const encoders = workers * workerConcurrency;
  // Jobs being encoded now are half done on average.
  const turns = inFront < encoders ? 0 : inFront / encoders - 0.5;
  return Math.round((meanSeconds + turns * meanEncodingSeconds) * 10) / 10;
}
