/** Fetches a source to a local file: whole, only the parts of its audio, or a stream's segments. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OriginHeaders, originHeaders } from 'soundpost-outbound/origin-headers';
import { type Probe, probe } from './probe.ts';
import type { LocalSource, SourceRequest } from './source-request.ts';
import { type StreamKind, streamKindOf } from './streams/detect.ts';

/**
 * @throws {OutboundRefused} for an address, or a redirect, that is not allowed; {OutboundFailed};
 * {MediaFailure} for a stream that cannot be read; {ServiceError} DOWNLOAD_FAILED for a stream that
 * names an address that is not allowed; the signal's reason
 */
export async function fetchSource(request: SourceRequest): Promise<LocalSource> {
  return openIfStream(await downloadFile(ofCaller(request), request), request, 1);
}

async function openIfStream(
  source: DownloadedFile,
  request: SourceRequest,
  tried: number,
): Promise<LocalSource> {
  const kind = source.probe === undefined ? await streamKindOf(source.path) : undefined;
  return kind === undefined ? source : await openStream({ ...source, kind }, request, tried);
}

interface DownloadedFile extends LocalSource {
  /** Its address after redirects. */
  readonly url: string;
  /** What requests to that address may carry. */
  readonly originHeaders: OriginHeaders | undefined;
  /**
   * Whether the server did not say where it ends: a lost connection ends it, too. Default it did.
   */
  readonly isOpenEnded?: boolean;
}

/** Times that a playlist or manifest is downloaded if it was cut off. */
const TRIES = 3;
const BACKOFF_MS = 1_000;

type Address = Pick<DownloadedFile, 'url' | 'originHeaders'>;

function ofCaller({ url, headers }: SourceRequest): Address {
  return { url, originHeaders: originHeaders(url, headers) };
}

/** @param minBytes below this size no parts are fetched, but the whole */
async function downloadFile(
  { url, originHeaders }: Address,
  request: SourceRequest,
  minBytes?: number,
): Promise<DownloadedFile> {
  const { outbound, workspace, signal, makeRoom, maxInputBytes, onFetched, onProgress, logger } = request;
  const path = join(workspace, 'source');
  let probed: Probe | null = null;
  const downloaded = await outbound.downloadParts({
    url,
    originHeaders,
    file: path,
    maxBytes: maxInputBytes,
    ...(minBytes === undefined ? {} : { minBytes }),
    signal,
    makeRoom,
    onProgress: ({ receivedBytes, totalBytes }) => onProgress?.(totalBytes ? receivedBytes / totalBytes : 0),
    async choose(parts) {
      const { fetchAudioParts } = await import('./audio-parts.ts');
      probed = await fetchAudioParts(parts, path, request);
      return probed !== null;
    },
  });
  const { sizeBytes, filename, partBytes } = downloaded;
  onFetched?.({ size: sizeBytes, fetched: partBytes ?? sizeBytes });
  logger?.debug({ sizeBytes, partBytes }, 'source downloaded');
  const name = filename ?? 'audio';
  const { url: address, isOpenEnded } = downloaded;
  const at = { url: address, originHeaders: downloaded.originHeaders };
  return { path, name, sizeBytes, ...at, isOpenEnded, ...(probed === null ? {} : { probe: probed }) };
}

async function openStream(
  playlist: DownloadedFile & { readonly kind: StreamKind },
  request: SourceRequest,
  tried: number,
): Promise<LocalSource> {
  const { CutOff } = await import('./streams/presentation.ts');
  const { fetchStream } = await import('./stream-source.ts');
  const { path, name, originHeaders } = playlist;
  const stream = await fetchStream(playlist, request).catch(async (error) => {
    if (!(error instanceof CutOff) || tried >= TRIES) throw error;
    await sleep(BACKOFF_MS * 2 ** (tried - 1), undefined, { signal: request.signal });
    return undefined;
  });
  if (stream === undefined) {
    const again = await downloadFile(ofCaller(request), request);
    // The new answer may be another playlist, or not a playlist.
    return openIfStream(again, request, tried + 1);
  }
  if (!('fileUrl' in stream)) return { ...stream, path, name };
  const { fileUrl, zeroSeconds, isTrack, elsewhere } = stream;
  // Whole, since parts may be many requests.
  const file = { url: fileUrl, originHeaders };
  const { sizeBytes } = await downloadFile(file, request, Number.POSITIVE_INFINITY);
  const { tools, signal } = request;
  const probed = await probe(tools, path, { signal, known: { zeroSeconds } });
  return { path, name, sizeBytes, probe: probed, isTrack, elsewhere };
}
