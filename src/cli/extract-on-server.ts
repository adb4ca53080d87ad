/** `extract` by a service: uploads a local file, follows the job and downloads its result. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { parseJson } from 'soundpost-base/json';
import { SoundpostError } from 'soundpost-client/error';
import type { CompletedJob } from 'soundpost-client/wait';
import type { ErrorBody } from 'soundpost-contract/errors';
import type { AnyOutputFile, Job, OutputFile } from 'soundpost-contract/job';
import type { BatchJobRequest } from 'soundpost-contract/job-request';
import { DetailedError, Upload } from 'tus-js-client';
import type { extractRequest } from './extract-options.ts';
import { type Progress, reportOf } from './progress.ts';
import type { Server } from './server.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { spool, type videoSource } from './video-source.ts';

type VideoSource = Awaited<ReturnType<typeof videoSource>>;

type ExtractRequest = ReturnType<typeof extractRequest>;

/** With its file, unless it was a probe. */
type EndedJob = CompletedJob<OutputFile | null>;

/** No local limit: the service decides what is too large. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** @returns the completed job. Throws SoundpostError; or the signal's reason, after cancelling. */
export async function extractOnServer(
  server: Server,
  source: VideoSource,
  request: ExtractRequest,
  signal: AbortSignal,
  progress: Progress,
): Promise<EndedJob> {
  if (source.kind === 'url') {
    const { url, headers } = source;
    return followed(server, { type: 'url', url, headers }, request, signal, progress);
  }
  const file = await uploaded(server, source, signal, progress);
  try {
    return await followed(server, { type: 'upload', file }, request, signal, progress);
  } catch (error) {
    if (signal.aborted) await server.client.uploads.delete(file).catch(() => undefined);
    throw error;
  }
}

async function uploaded(
  server: Server,
  source: Exclude<VideoSource, { kind: 'url' }>,
  signal: AbortSignal,
  progress: Progress,
): Promise<string> {
  const send = (file: Extract<VideoSource, { kind: 'file' }>): Promise<string> =>
    uploadFile(server, file, signal, (fraction) => progress.show({ step: 'uploading', fraction }));
  if (source.kind === 'file') return send(source);
  const folder = await temporaryFolder();
  try {
    progress.show({ step: 'reading' });
    return await send(await spool(source, folder.path, NO_LIMIT, signal));
  } finally {
    await folder.remove();
  }
}

async function followed(
  { client }: Server,
  source: BatchJobRequest['source'],
  request: ExtractRequest,
  signal: AbortSignal,
  progress: Progress,
): Promise<EndedJob> {
  progress.show({ step: 'submitting' });
  signal.throwIfAborted();
  // Not under the signal: a job whose id never arrived could not be cancelled.
  const { jobId } = await client.extract({ source, ...request });
  try {
    return await client.waitFor<OutputFile | null>(jobId, {
      signal,
      onProgress: (job) => progress.show(reportOf(job)),
    });
  } catch (error) {
    if (signal.aborted) {
      progress.note(`cancelling ${jobId}`);
      await client.cancel(jobId).catch((failure: unknown) => {
        const why = failure instanceof Error ? failure.message : String(failure);
        progress.note(
          `${jobId} may still be running: ${why}; cancel it with "soundpost jobs cancel ${jobId}"`,
        );
      });
    }
    throw error;
  }
}

/**
 * Waits until the job's voice message and its deliveries to destinations have ended. Rejects where
 * a destination did not take a file at once: the service may try for a day.
 */
export async function awaitHandedOn(server: Server, jobId: string, signal: AbortSignal): Promise<Job> {
  for (let pauseMs = 200; ; pauseMs = Math.min(pauseMs * 1.5, 3000)) {
    const job = await server.client.job(jobId, { signal });
    const { voiceMessage, destination } = job;
    const isSending = voiceMessage?.status === 'pending' || voiceMessage?.status === 'sending';
    if (!isSending && destination?.status !== 'pending') return job;
    if (destination?.status === 'pending') await requireNoFailedPut(server, jobId, signal);
    await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

async function requireNoFailedPut({ client }: Server, jobId: string, signal: AbortSignal): Promise<void> {
  const { deliveries } = await client.deliveries(jobId, { signal });
  for (const { kind, nextAttemptAt, attempts } of deliveries) {
    const why = attempts.at(-1)?.error;
    if (kind !== 'destination' || nextAttemptAt === null || !why) continue;
    throw new Error(
      `the file is not at its destination yet: ${why}; the service keeps retrying, see "soundpost deliveries list ${jobId}"`,
    );
  }
}

/**
 * A job's file as a stream, which ends well only if every byte is as the service made it.
 * @param file of a completed job
 */
export async function download(
  { client }: Server,
  jobId: string,
  { name, sha256 }: Pick<AnyOutputFile, 'name' | 'sha256'>,
  signal: AbortSignal,
): Promise<Readable> {
  const { body } = await client.download(jobId, { name, signal });
  return Readable.from(checked(body ?? new ReadableStream(), jobId, sha256, signal), { objectMode: false });
}

async function* checked(
  body: ReadableStream<Uint8Array>,
  jobId: string,
  sha256: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const remedy = `download it again with "soundpost jobs download ${jobId}"`;
  const hash = createHash('sha256');
  try {
    for await (const chunk of body) {
      hash.update(chunk);
      yield chunk;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error(`the audio is ready, but its download was interrupted; ${remedy}`, { cause });
  }
  if (hash.digest('hex') !== sha256) {
    throw new Error(`the audio is ready, but its download is damaged; ${remedy}`);
  }
}

// Uploads a file in pieces by tus: a broken connection costs only the piece in progress.

interface LocalFile {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
}

/** After a break; the last delay is used once. */
const RETRY_DELAYS_MS = [500, 1000, 3000, 5000, 10_000, 20_000];

/**
 * @param onProgress gets 0 … 1
 * @returns the id of the complete upload
 * @throws SoundpostError; the signal's reason. Then the upload is deleted.
 */
async function uploadFile(
  { client, url, apiKey }: Server,
  { path, name, sizeBytes }: LocalFile,
  signal: AbortSignal,
  onProgress: (fraction: number) => void,
): Promise<string> {
  const { file } = await client.uploads.begin(sizeBytes, { filename: name, signal });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Requests have a known length, as some servers and proxies require.
  const upload = new Upload(createReadStream(path), {
    // Not the service's own address: it may not know the one that we use.
    uploadUrl: `${url}/v1/uploads/${file}`,
    uploadSize: sizeBytes,
    retryDelays: RETRY_DELAYS_MS,
    headers: { 'X-API-Key': apiKey },
    storeFingerprintForResuming: false,
    onProgress: (sentBytes) => onProgress(sizeBytes === 0 ? 1 : sentBytes / sizeBytes),
    onSuccess: () => resolve(),
    onError: (error) => reject(asSoundpostError(error)),
  });
  const abort = (): void => {
    upload.abort().then(() => reject(signal.reason), reject);
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    upload.start();
    await promise;
    return file;
  } catch (error) {
    await client.uploads.delete(file).catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function asSoundpostError(error: Error): Error {
  if (!(error instanceof DetailedError)) return error;
  const response = error.originalResponse;
  const httpStatus = response?.getStatus() ?? 0;
  const refusal = refusalIn(response?.getBody() ?? '');
  if (refusal !== undefined) return new SoundpostError(refusal, { httpStatus });
  const body =
    response === null
      ? { code: 'NETWORK_ERROR' as const, message: 'the connection was lost repeatedly during the upload' }
      : {
          code: 'UNEXPECTED_ANSWER' as const,
          message: `the upload failed with HTTP ${httpStatus} and no error details`,
        };
  return new SoundpostError(body, { httpStatus, cause: error.causingError });
}

function refusalIn(body: string): ErrorBody | undefined {
  try {
    const parsed = parseJson(body);
    return typeof parsed === 'object' && parsed !== null && 'error' in parsed
      ? (parsed.error as ErrorBody)
      : undefined;
  } catch {
    return undefined;
  }
}
