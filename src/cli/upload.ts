/** A file goes to the service in pieces by tus, so that a connection that breaks costs what was under way and no more. */
import { createReadStream } from 'node:fs';
import { SoundpostError } from 'soundpost-client/error';
import type { ErrorBody } from 'soundpost-contract/errors';
import { DetailedError, Upload } from 'tus-js-client';
import type { Server } from './server.ts';

interface LocalFile {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
}

/** After a break; the last one is waited for once. */
const RETRY_DELAYS_MS = [500, 1000, 3000, 5000, 10_000, 20_000];

/**
 * @param onProgress is told 0 … 1
 * @returns the id of the complete upload
 * @throws SoundpostError; the signal's reason. What was uploaded is deleted then.
 */
export async function uploadFile(
  { client, url, apiKey }: Server,
  { path, name, sizeBytes }: LocalFile,
  signal: AbortSignal,
  onProgress: (fraction: number) => void,
): Promise<string> {
  const { file } = await client.uploads.begin(sizeBytes, { filename: name, signal });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // The length of each request is known, so that a server or a proxy that wants it is content.
  const upload = new Upload(createReadStream(path), {
    // Not the address that the service answers: it may be reached by another one than it knows.
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
      ? { code: 'NETWORK_ERROR' as const, message: 'the connection broke during the upload, again and again' }
      : {
          code: 'UNEXPECTED_ANSWER' as const,
          message: `the upload was answered ${httpStatus} without an envelope`,
        };
  return new SoundpostError(body, { httpStatus, cause: error.causingError });
}

function refusalIn(body: string): ErrorBody | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null && 'error' in parsed
      ? (parsed.error as ErrorBody)
      : undefined;
  } catch {
    return undefined;
  }
}
