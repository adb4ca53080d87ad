/**
 * What can be done with a job whose record this version cannot read: tell whose it is, name its
 * files, and remove it.
 */
import { outputFormats } from 'soundpost-contract/formats';
import { outputsOf } from 'soundpost-contract/output-request';
import { subtitles } from 'soundpost-contract/transcripts';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, unlessUnreadable } from 'soundpost-kit/redis/record';
import {
  fetchExtraction,
  readExtraction,
  removeExtraction,
  type StoredExtraction,
} from './bullmq-internals.ts';
import { jobIndexKeys } from './job-index.ts';
import { attemptFiles } from './names.ts';
import { ExtractPayload, ExtractResult, storageKeysOf } from './payloads.ts';

/**
 * Removes the job with all that waits for it; a worker that runs it loses it.
 * @returns storage keys where its files may lie
 */
export async function removeUnreadable(redis: Redis, tenant: string, jobId: string): Promise<string[]> {
  const stored = readExtraction(await fetchExtraction(redis, jobId));
  const keys = stored === undefined ? [] : await possibleFiles(jobId, stored);
  await removeExtraction(redis, jobId, jobIndexKeys(tenant));
  return keys;
}

/** Keys that the record mentions, and those of each attempt's files. Some may not exist. */
export async function possibleFiles(jobId: string, stored: StoredExtraction): Promise<string[]> {
  const { data, result = '', attemptTokens } = stored;
  const mentioned = `${data} ${result}`.match(new RegExp(`files/${jobId}/[\\w-][\\w.-]*`, 'g')) ?? [];
  const [payload, published] = await Promise.all([
    unlessUnreadable(
      () => readText(ExtractPayload, data),
      () => undefined,
    ),
    unlessUnreadable(
      () => readText(ExtractResult, result),
      () => undefined,
    ),
  ]);
  const ofAttempts = attemptTokens.flatMap((token) => {
    if (payload === undefined) return extensions.map((extension) => `files/${jobId}/${token}.${extension}`);
    const { outputs, ofTranscripts, voice } = attemptFiles(jobId, token, outputsOf(payload));
    return [...outputs, ...ofTranscripts, ...(payload.options.voiceMessage ? [voice] : [])];
  });
  return [...new Set([...ofAttempts, ...storageKeysOf(published), ...mentioned])];
}

/** Of the first output, which alone has no name in its key, and of a voice message. */
const extensions = [
  ...new Set(
    [...Object.values(outputFormats), ...Object.values(subtitles)].map(({ extension }) => extension),
  ),
  'wav',
  'voice.ogg',
];
