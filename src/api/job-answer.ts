/** From a job's record to what its owner is shown (audio-extraction.md "Job", decisions A4). */
import type { Job } from '../contract/job.ts';
import type { AnnouncementStates } from '../queue/announcement-state.ts';
import type { JobRecord } from '../queue/job-record.ts';
import { optionsView, outputFileView, sourceView } from '../queue/public-view.ts';
import type { UrlSigner } from '../signing/signed-url.ts';

export function jobAnswer(record: JobRecord, announcements: AnnouncementStates, signer: UrlSigner): Job {
  const { payload, progress, result } = record;
  return {
    jobId: record.jobId,
    status: record.status,
    ...shownProgress(record),
    ...(record.status === 'processing'
      ? { estimatedTimeRemaining: progress?.estimatedTimeRemaining ?? 0 }
      : {}),
    inputFile: result?.inputFile ?? progress?.inputFile ?? null,
    outputFile: result && outputFileView(record.jobId, result, signer),
    output: payload.output,
    options: optionsView(payload),
    source: sourceView(payload),
    batchId: payload.batchId,
    retryOf: payload.retryOf,
    createdAt: iso(record.createdAtMs),
    startedAt: record.startedAtMs === null ? null : iso(record.startedAtMs),
    finishedAt: record.finishedAtMs === null ? null : iso(record.finishedAtMs),
    ...(announcements.voiceMessage ? { voiceMessage: announcements.voiceMessage } : {}),
    ...(announcements.webhook ? { webhook: announcements.webhook } : {}),
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
