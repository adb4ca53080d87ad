/**
 * Downloads the wanted parts of a file into a sparse local file of full size. If the server or the
 * file is unsuitable, it downloads the whole file.
 */
import { rm } from 'node:fs/promises';
import { deadline } from 'soundpost-base/deadline';
import {
  type Downloaded,
  type DownloadLimits,
  type DownloadOptions,
  defaultLimits,
  download,
  withTries,
} from './download.ts';
import { OutboundFailed, OutboundRefused } from './errors.ts';
import { type Answer, headerOf, type Route } from './exchange.ts';
import { asWholeAnswer, Beginning, openSource, remoteFileOf } from './ranges-opening.ts';
import type { RemoteParts, SourceParts } from './ranges-parts.ts';
import type { RemoteFile } from './ranges-request.ts';
import { sourceName } from './source-name.ts';

export interface PartsOptions extends DownloadOptions {
  /** Smaller files are downloaded whole. Default 8 MiB. */
  readonly minBytes?: number;
  /** The share of the whole file's time that parts must save. Default 0.3. */
  readonly leastGain?: number;
  /**
   * Reads and fetches the wanted parts; the local file exists, with holes, after the first fetch.
   * @returns whether all of them are there; otherwise the file is downloaded whole
   */
  readonly choose: (parts: SourceParts) => Promise<boolean>;
}

export interface PartsDownloaded extends Downloaded {
  /** Bytes fetched, including gaps; undefined if the file was downloaded whole. */
  readonly partBytes: number | undefined;
}

const DEFAULT_MIN_BYTES = 8 * 1_024 * 1_024;

/**
 * `onProgress` counts the wanted bytes, once their number is known.
 * @throws as `download` does, and what `choose` throws, except failures of the parts themselves
 */
export async function downloadParts(route: Route, options: PartsOptions): Promise<PartsDownloaded> {
  const limits = { ...defaultLimits, ...options.limits };
  const begunAt = Date.now();
  const reason = () => new OutboundFailed('timeout', 'the download took too long', false);
  using limit = deadline(limits.totalMs, { signal: options.signal, reason });
  let unusedRoomBytes = 0;
  const makeRoomForParts = async (bytes: number): Promise<void> => {
    await options.makeRoom?.(bytes);
    unusedRoomBytes += bytes;
  };
  /** Room reserved for removed parts is reused for the whole file. */
  const makeRoom = async (bytes: number): Promise<void> => {
    const missing = bytes - unusedRoomBytes;
    unusedRoomBytes = Math.max(0, -missing);
    if (missing > 0) await options.makeRoom?.(missing);
  };
  const outcome = await tryParts(route, { ...options, makeRoom: makeRoomForParts }, limits, limit.signal);
  if ('downloaded' in outcome) return outcome.downloaded;
  const totalMs = Math.max(1, limits.totalMs - (Date.now() - begunAt));
  const whole = await download(
    route,
    { ...options, makeRoom, limits: { ...limits, totalMs } },
    outcome.first,
  );
  return { ...whole, partBytes: undefined };
}

/** The parts, or the first answer for `download` to continue with, if usable. */
type Outcome =
  | { readonly downloaded: PartsDownloaded }
  | { readonly first: (() => Promise<Answer>) | undefined };

async function tryParts(
  route: Route,
  options: PartsOptions,
  limits: DownloadLimits,
  signal: AbortSignal,
): Promise<Outcome> {
  let opened: Awaited<ReturnType<typeof openSource>>;
  try {
    opened = await openSource(route, options, limits, signal);
  } catch (error) {
    // It counts as the first of download's tries, which decides about a retry.
    return { first: () => Promise.reject(error) };
  }
  const { answer, waitedSeconds } = opened;
  const remote = remoteFileOf(answer);
  if (remote === undefined || !isWithin(remote.sizeBytes, options)) {
    const whole = asWholeAnswer(answer);
    return { first: whole && (() => Promise.resolve(whole)) };
  }
  const beginning = new Beginning(answer, { ...limits, maxBytes: remote.sizeBytes }, signal);
  const { RemoteParts } = await import('./ranges-parts.ts');
  let receivedBytes = 0;
  let wantedBytes = 0;
  const parts = new RemoteParts(remote, {
    ...{ route, remote, limits, signal, beginning, waitedSeconds, file: options.file },
    makeRoom: async (bytes) => options.makeRoom?.(bytes),
    leastGain: options.leastGain,
    withTries: (abort, attempt) => withTries(limits, abort, attempt),
    onFetch: (bytes) => {
      wantedBytes = receivedBytes + bytes;
    },
    onBytes: (bytes) => {
      receivedBytes += bytes;
      const totalBytes = wantedBytes === 0 ? undefined : Math.max(wantedBytes, receivedBytes);
      options.onProgress?.({ receivedBytes, totalBytes });
    },
  });
  const isDone = await decide(options, parts, beginning, signal);
  if (isDone) {
    const partBytes = receivedBytes + beginning.readBytes;
    return { downloaded: { ...describe(options, remote, answer), partBytes } };
  }
  if (!beginning.isWhole) return { first: undefined };
  return { first: () => Promise.resolve({ ...answer, status: 200, body: beginning.asBody() }) };
}

/** Lets the reader choose, and cleans up on failure. */
async function decide(
  options: PartsOptions,
  parts: RemoteParts,
  beginning: Beginning,
  signal: AbortSignal,
): Promise<boolean> {
  let isDone = false;
  try {
    isDone = await options.choose(parts);
  } catch (error) {
    await beginning.drop();
    signal.throwIfAborted();
    if (!(error instanceof OutboundFailed || error instanceof OutboundRefused)) throw error;
  } finally {
    const isThere = await parts.close();
    if (isThere && !isDone) await rm(options.file, { force: true });
  }
  return isDone;
}

function isWithin(sizeBytes: number, { minBytes = DEFAULT_MIN_BYTES, maxBytes }: PartsOptions): boolean {
  return sizeBytes >= minBytes && sizeBytes <= maxBytes;
}

function describe(
  options: PartsOptions,
  remote: RemoteFile,
  { headers, url, originHeaders }: Answer,
): Downloaded {
  return {
    sizeBytes: remote.sizeBytes,
    contentType: headerOf(headers, 'content-type'),
    filename: sourceName(headerOf(headers, 'content-disposition'), new URL(options.url), url),
    url: url.href,
    originHeaders,
  };
}
