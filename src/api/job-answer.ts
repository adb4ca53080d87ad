/** From a job's record to what its owner is shown (audio-extraction.md "Job", decisions A4). */
import type { Job } from '../contract/job.ts';
import type { JobRecord } from '../queue/job-record.ts';
import { optionsView, outputFileView, sourceView } from '../queue/public-view.ts';
import { readVoiceState } from '../queue/voice-state.ts';
import type { ApiServices } from './route.ts';

export async function jobAnswer(
  record: JobRecord,
  { redis, webhooks, signer }: Pick<ApiServices, 'redis' | 'webhooks' | 'signer'>,
): Promise<Job> {
  const { payload, progress, result } = record;
  // One round trip where neither was asked for.
  const [webhook, voiceMessage] = await Promise.all([
    payload.options.webhook === undefined ? undefined : webhooks.stateOf(record.jobId),
    readVoiceState(redis, record),
  ]);
  return {
    jobId: record.jobId,
    status: record.status,
    ...shownProgress(record),
    ...(record.status === 'processing'
      ? { estimatedTimeRemaining: progress?.estimatedTimeRemaining ?? 0 }
      : {}),
    inputFile: result?.inputFile ?? progress?.inputFile ?? null,
    outputFile: result && outputFileView(record.jobId, result, signer),
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
