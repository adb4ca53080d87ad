/** From a job's record to what its owner is shown (audio-extraction.md "Job", decisions A4). */
import type { Job } from 'soundpost-contract/job';
import { outputsOf } from 'soundpost-contract/output-request';
import { readDestinations } from '../followups/state/destinations.ts';
import { readTranscripts, type TranscriptProgress } from '../followups/state/transcripts.ts';
import { readVoiceState } from '../followups/state/voice.ts';
import type { JobRecord } from '../jobs/job-record.ts';
import { filesView, optionsView, sourceView, transcriptFileView } from '../jobs/public-view.ts';
import { readUpload } from '../jobs/uploads/record.ts';
import type { ApiServices } from './route.ts';

export async function jobAnswer(
  record: JobRecord,
  { redis, followUps, signer }: Pick<ApiServices, 'redis' | 'followUps' | 'signer'>,
): Promise<Job> {
  const { payload, progress, result } = record;
  // One round trip where nothing follows.
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
    source: sourceView(payload),
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

/** In the order in which they were asked for; a transcript is among them once it is there. */
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
    outputFile: placed(outputFile),
    outputFiles: all.sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name)).map(placed),
  };
}

/** What the server knows of an upload whose job failed before it was analysed; its size only while the upload is kept. */
async function failedUpload(redis: ApiServices['redis'], record: JobRecord): Promise<Job['inputFile']> {
  const { payload, status, progress } = record;
  if (payload.source.type !== 'upload' || status !== 'failed' || progress?.inputFile) {
    return null;
  }
  const { file, name } = payload.source;
  const upload = await readUpload(redis, payload.tenant, file);
  return { name, size: upload?.sizeBytes ?? null, duration: null, format: null, tracks: [] };
}

/** How far a job is: 100 only when it is completed; a failed job keeps the step in which it failed. */
export function shownProgress({
  status,
  progress,
}: Pick<JobRecord, 'status' | 'progress'>): Pick<Job, 'progress' | 'currentStep'> {
  if (status === 'completed') {
    return { progress: 100, currentStep: 'finalizing' };
  }
  const firstStep = status === 'processing' ? 'downloading_video' : null;
  return { progress: progress?.progress ?? 0, currentStep: progress?.currentStep ?? firstStep };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
