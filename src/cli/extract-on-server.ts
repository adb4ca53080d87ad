/** `extract` by a service: what is local is uploaded, the job followed to its end and its file fetched. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { CompletedJob } from 'soundpost-client/wait';
import type { AnyOutputFile, Job } from 'soundpost-contract/job';
import type { ExtractRequest } from './extract-options.ts';
import type { Progress } from './progress.ts';
import { reportOf } from './progress.ts';
import type { Server } from './server.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { uploadFile } from './upload.ts';
import { spool, type VideoSource } from './video-source.ts';

/** Larger than what any service takes: it says itself what is too much. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** @returns the completed job. Throws SoundpostError; the signal's reason, once the job is cancelled. */
export async function extractOnServer(
  server: Server,
  source: VideoSource,
  request: ExtractRequest,
  signal: AbortSignal,
  progress: Progress,
): Promise<CompletedJob> {
  if (source.kind === 'url') {
    return followed(server, { type: 'url', url: source.url }, request, signal, progress);
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
  source: { type: 'url'; url: string } | { type: 'upload'; file: string },
  request: ExtractRequest,
  signal: AbortSignal,
  progress: Progress,
): Promise<CompletedJob> {
  progress.show({ step: 'submitting' });
  signal.throwIfAborted();
  // Not under the signal: a job whose id never came could not be cancelled.
  const { jobId } = await client.extract({ source, ...request });
  try {
    return await client.waitFor(jobId, { signal, onProgress: (job) => progress.show(reportOf(job)) });
  } catch (error) {
    if (signal.aborted) {
      progress.note(`cancelling ${jobId}`);
      await client.cancel(jobId).catch((failure: unknown) => {
        const why = failure instanceof Error ? failure.message : String(failure);
        progress.note(`${jobId} may go on: ${why}; "soundpost jobs cancel ${jobId}" tries again`);
      });
    }
    throw error;
  }
}

/** The job, once nothing more becomes of its voice message (sent, failed or unknown), nor of what is put to a destination. */
export async function awaitHandedOn({ client }: Server, jobId: string, signal: AbortSignal): Promise<Job> {
  const isOnItsWay = ({ voiceMessage, destination }: Job): boolean =>
    [voiceMessage?.status, destination?.status].some(
      (status) => status === 'pending' || status === 'sending',
    );
  for (let pauseMs = 200; ; pauseMs = Math.min(pauseMs * 1.5, 3000)) {
    const job = await client.job(jobId, { signal });
    if (!isOnItsWay(job)) return job;
    await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/**
 * The file of a job as a stream, which ends well only when every byte is as the service made it.
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
  const remedy = `"soundpost jobs download ${jobId}" fetches it again`;
  const hash = createHash('sha256');
  try {
    for await (const chunk of body) {
      hash.update(chunk);
      yield chunk;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error(`the audio is made, but its download broke off; ${remedy}`, { cause });
  }
  if (hash.digest('hex') !== sha256) {
    throw new Error(`the audio is made, but what arrived of it is something else; ${remedy}`);
  }
}
