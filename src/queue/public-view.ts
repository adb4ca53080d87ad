/** From what is stored of a job to what its owner may see of it, in answers and in webhooks alike. */
import type { OutputFile } from '../contract/job.ts';
import type { JobOptions } from '../contract/job-request.ts';
import type { UrlSigner } from '../signing/signed-url.ts';
import type { ExtractPayload, ExtractResult } from './payloads.ts';

export function outputFileView(
  jobId: string,
  { outputFile: { storageKey: _, ...file } }: ExtractResult,
  signer: UrlSigner,
): OutputFile {
  return { ...file, url: signer.downloadUrl(jobId, Date.parse(file.expiresAt)) };
}

export function optionsView({ options }: ExtractPayload): JobOptions {
  return options.webhook === undefined ? options : { ...options, webhook: withoutQuery(options.webhook) };
}

export function sourceView({ source }: ExtractPayload): {
  type: 'url' | 'upload';
  url?: string;
  file?: string;
} {
  return source.type === 'url'
    ? { type: 'url', url: withoutQuery(source.url) }
    : { type: 'upload', file: source.file };
}

/** Presigned addresses carry their secret in the query, so it is not shown. */
function withoutQuery(url: string): string {
  const [base = ''] = url.split(/[?#]/, 1);
  return base;
}
