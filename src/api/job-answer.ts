/** From a job's record to what its owner is shown (audio-extraction.md "Job", decisions A4). */
import type { Job, OutputFile } from '../contract/job.ts';
import type { AnnouncementStates } from '../queue/announcement-state.ts';
import type { JobRecord } from '../queue/job-record.ts';
import type { ExtractPayload, ExtractResult } from '../queue/payloads.ts';
import type { UrlSigner } from './signed-url.ts';

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
    outputFile: result && outputFileAnswer(record.jobId, result, signer),
    output: payload.output,
    options: optionsAnswer(payload),
    source: sourceAnswer(payload),
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

export function outputFileAnswer(jobId: string, result: ExtractResult, signer: UrlSigner): OutputFile {
  const { storageKey: _, filename, ...file } = result.outputFile;
  return { filename, url: signer.downloadUrl(jobId, Date.parse(file.expiresAt)), ...file };
}

/** Presigned addresses carry their secret in the query, so it is not shown. */
function withoutQuery(url: string): string {
  const [base = ''] = url.split(/[?#]/, 1);
  return base;
}

function sourceAnswer({ source }: ExtractPayload): Job['source'] {
  return source.type === 'url'
    ? { type: 'url', url: withoutQuery(source.url) }
    : { type: 'upload', file: source.file };
}

function optionsAnswer({ options }: ExtractPayload): Job['options'] {
  return options.webhook === undefined ? options : { ...options, webhook: withoutQuery(options.webhook) };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
