/** A source at an address comes to a local file: whole, the parts that its audio takes, or the segments of a stream. */
import { join } from 'node:path';
import type { Logger } from 'soundpost-base/logger';
import type { NamedOutput } from 'soundpost-contract/output-request';
import type { BegunDownload } from 'soundpost-outbound/download';
import type { Outbound } from 'soundpost-outbound/outbound';
import { type Probe, probe } from './probe.ts';
import type { MediaTools } from './run.ts';
import type { BegunJoin } from './streams/join/join.ts';
import { type StreamKind, streamKindOf } from './streams/detect.ts';

export interface SourceRequest {
  /** http or https. */
  readonly url: string;
  /** What will be made of it says which tracks are fetched. */
  readonly outputs: readonly [NamedOutput, ...NamedOutput[]];
  /** An empty folder, in which the file is put, as `source`. */
  readonly workspace: string;
  readonly tools: MediaTools;
  readonly outbound: Outbound;
  /** Largest source that is taken, bytes. */
  readonly maxInputBytes: number;
  /** Longest audio that is taken, seconds. */
  readonly maxAudioSeconds: number;
  readonly signal: AbortSignal;
  /** Waited for before so many bytes are written. */
  readonly makeRoom: (bytes: number) => Promise<void>;
  /** How much has come, 0 … 1. */
  readonly onProgress?: (fraction: number) => void;
  /** Told of each file that has come: its size, and how much of it was fetched, bytes. */
  readonly onFetched?: (bytes: { readonly size: number; readonly fetched: number }) => void;
  readonly logger?: Logger;
  /** What an earlier try has left; default: each begins anew. */
  readonly earlier?: EarlierTry;
}

/** The segments of a stream that have come. */
export interface BegunStream extends BegunJoin {
  readonly receivedBytes: number;
  /** What the segments of the stream are told by: another list is another stream. */
  readonly identity: string;
  readonly segments: number;
}

export interface EarlierTry {
  /** Moves what had come of the file to this path. */
  takeDownload(path: string): Promise<BegunDownload | undefined>;
  /** The same of a stream with these segments. */
  takeStream(path: string, identity: string): Promise<BegunStream | undefined>;
  /** Asked where a try breaks off: takes the file away, or leaves it. */
  keep(path: string, begun: BegunDownload | BegunStream): Promise<void>;
  /** Whether what has come is wanted after the signal's reason. */
  isWanted(): boolean;
}

export interface LocalSource {
  readonly path: string;
  /** The server's name for it; `audio` where it has none. */
  readonly name: string;
  readonly sizeBytes: number;
  /** What ffprobe said of it already, to know what to fetch. */
  readonly probe?: Probe;
  /** Whether the wanted track is all the sound in it: one rendition of a stream. */
  readonly isTrack?: boolean;
  /** Names of the transcripts whose track lies in another rendition of the stream. */
  readonly elsewhere?: readonly string[];
}

/**
 * @throws {OutboundRefused} when the address, or one that it leads to, may not be reached; {OutboundFailed} when it cannot be fetched; {MediaFailure} when it
 *   is a stream that cannot be read; {ServiceError} DOWNLOAD_FAILED when a stream names an address that may not be reached; the signal's reason
 */
export async function fetchSource(request: SourceRequest): Promise<LocalSource> {
  const source = await downloadFile(request.url, request, request.earlier);
  const kind = source.probe === undefined ? await streamKindOf(source.path) : undefined;
  return kind === undefined ? source : await openStream({ ...source, kind }, request);
}

interface DownloadedFile extends LocalSource {
  /** Where it lies, after redirects. */
  readonly url: string;
}

async function downloadFile(
  url: string,
  request: SourceRequest,
  earlier?: EarlierTry,
): Promise<DownloadedFile> {
  const { outbound, workspace, signal, makeRoom, maxInputBytes, onFetched, onProgress, logger } = request;
  const path = join(workspace, 'source');
  let probed: Probe | null = null;
  const downloaded = await outbound.downloadParts({
    url,
    file: path,
    maxBytes: maxInputBytes,
    signal,
    begun: await earlier?.takeDownload(path),
    async onBrokenOff(begun) {
      if (earlier?.isWanted()) await earlier.keep(path, begun);
    },
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
  return { path, name, sizeBytes, url: downloaded.url, ...(probed === null ? {} : { probe: probed }) };
}

async function openStream(
  playlist: DownloadedFile & { readonly kind: StreamKind },
  request: SourceRequest,
): Promise<LocalSource> {
  const { fetchStream } = await import('./stream-source.ts');
  const { path, name } = playlist;
  const stream = await fetchStream(playlist, request);
  if (!('fileUrl' in stream)) return { ...stream, path, name };
  const { fileUrl, zeroSeconds, isTrack, elsewhere } = stream;
  // What is kept of an earlier try is the beginning of the source, and no file that a stream led to.
  const { sizeBytes } = await downloadFile(fileUrl, request);
  const { tools, signal } = request;
  const probed = await probe(tools, path, { signal, known: { zeroSeconds } });
  return { path, name, sizeBytes, probe: probed, isTrack, elsewhere };
}
