/** Shows a stored job to its owner, in answers and webhooks alike. */
import type { AnyOutputFile, OutputFile, TranscriptFile } from 'soundpost-contract/job';
import type { JobOptions } from 'soundpost-contract/job-request';
import type { UrlSigner } from 'soundpost-kit/signing/signatures';
import { withoutQuery } from './destinations.ts';
import {
  type ExtractPayload,
  type ExtractResult,
  filesOf,
  type StoredFile,
  type StoredTranscript,
} from './payloads.ts';

/** A result's files with their signed addresses, unless erased. */
export function filesView(
  jobId: string,
  result: ExtractResult,
  signer: UrlSigner,
  erased = false,
): { outputFile: OutputFile | null; outputFiles: AnyOutputFile[] } {
  const files = filesOf(result);
  const addressOf = ({ name, expiresAt }: StoredFile): { url?: string } => {
    // A name is needed, and signed, only if there is a choice.
    const wanted = files.length > 1 ? { name } : 'output';
    return erased ? {} : { url: signer.downloadUrl(jobId, Date.parse(expiresAt), wanted) };
  };
  const audioView = (stored: NonNullable<ExtractResult['outputFile']>): OutputFile => {
    const { storageKey: _, ...file } = stored;
    return { ...file, ...addressOf(stored) };
  };
  return {
    outputFile: result.outputFile && audioView(result.outputFile),
    outputFiles: files.map((stored) => {
      const { storageKey: _, ...file } = stored;
      return { ...file, ...addressOf(stored) };
    }),
  };
}

/** A transcript's file, shown like those of {@link filesView}. */
export function transcriptFileView(
  jobId: string,
  { storageKey: _, ...file }: StoredTranscript,
  signer: UrlSigner,
  erased = false,
): TranscriptFile {
  const { name, expiresAt } = file;
  return erased ? file : { ...file, url: signer.downloadUrl(jobId, Date.parse(expiresAt), { name }) };
}

export function optionsView({ options }: ExtractPayload): JobOptions {
  return options.webhook === undefined ? options : { ...options, webhook: withoutQuery(options.webhook) };
}

export function sourceView({ source }: ExtractPayload): {
  type: 'url' | 'upload';
  url?: string;
  headers?: string[];
  file?: string;
  name?: string;
} {
  return source.type === 'url'
    ? {
        type: 'url',
        url: withoutQuery(source.url),
        ...(source.headers && { headers: source.headers.names }),
      }
    : { type: 'upload', file: source.file, name: source.name };
}
