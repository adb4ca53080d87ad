/** From a job's record to what its owner is shown (audio-extraction.md "Job", decisions A4). */
import type { Job } from '../contract/job.ts';
import type { AnnouncementStates } from '../queue/announcement-state.ts';
import type { JobRecord } from '../queue/job-record.ts';
import { optionsView, outputFileView, sourceView } from '../queue/public-view.ts';
import type { UrlSigner } from '../signing/signed-url.ts';

export function jobAnswer(record: JobRecord, announcements: AnnouncementStates, signer: UrlSigner): Job {
  const { payload, progress, result } = record;
  const processing = record.status === 'processing';
  return {
    jobId: record.jobId,
    status: record.status,
    progress: record.status === 'completed' ? 100 : (progress?.progress ?? 0),
    currentStep: result
      ? 'finalizing'
      : processing
        ? (progress?.currentStep ?? 'downloading_video')
        : (progress?.currentStep ?? null),
    ...(processing ? { estimatedTimeRemaining: progress?.estimatedTimeRemaining ?? 0 } : {}),
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

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
