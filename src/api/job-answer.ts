/** From a job's record to what its owner is shown (audio-extraction.md "Job", decisions A4). */
import type { Job } from '../contract/job.ts';
import type { JobRecord } from '../queue/job-record.ts';
import { optionsView, outputFileView, sourceView } from '../queue/public-view.ts';
import { readVoiceState } from '../queue/voice-state.ts';
import { readUpload } from '../uploads/record.ts';
import type { ApiServices } from './route.ts';

export async function jobAnswer(
  record: JobRecord,
  { redis, webhooks, signer }: Pick<ApiServices, 'redis' | 'webhooks' | 'signer'>,
): Promise<Job> {
  const { payload, progress, result } = record;
  // One round trip where neither was asked for.
  const [webhook, voiceMessage, upload] = await Promise.all([
    payload.options.webhook === undefined ? undefined : webhooks.stateOf(record.jobId),
    readVoiceState(redis, record),
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
    outputFile: shownOutputFile(record, signer),
    warnings: result?.warnings ?? [],
    output: payload.output,
    options: optionsView(payload),
    source: sourceView(payload),
    batchId: payload.batchId,
    retryOf: payload.retryOf,
    createdAt: iso(record.createdAtMs),
    startedAt: record.startedAtMs === null ? null : iso(record.startedAtMs),
    finishedAt: record.finishedAtMs === null ? null : iso(record.finishedAtMs),
    ...(voiceMessage ? { voiceMessage } : {}),
    ...(webhook ? { webhook } : {}),
    ...(record.error ? { error: record.error } : {}),
  };
}

/** Without its address once the file was erased. */
function shownOutputFile(
  { jobId, result, erased }: JobRecord,
  signer: ApiServices['signer'],
): Job['outputFile'] {
  if (result === null) {
    return null;
  }
  const { url, ...file } = outputFileView(jobId, result, signer);
  return erased ? file : { ...file, url };
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
