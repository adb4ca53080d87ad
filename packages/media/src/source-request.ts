/** How a source at an address is fetched, and the result. */
import type { Logger } from 'soundpost-base/logger';
import type { NamedOutput } from 'soundpost-contract/output-request';
import type { Admit } from 'soundpost-outbound/exchange';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Probe } from './probe.ts';
import type { MediaTools } from './run.ts';

/** Before each request that a playlist or manifest causes. @returns called once it has ended */
export type AdmitStreamRequest = (
  request: Parameters<Admit>[0] & { readonly isSegment: boolean },
) => ReturnType<Admit>;

export interface SourceRequest {
  /** http or https. */
  readonly url: string;
  /** For the origin of `url` alone. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What will be made of it says which tracks are fetched; if nothing is, the default track. */
  readonly outputs: readonly NamedOutput[];
  /** An empty folder, which gets the file as `source`. */
  readonly workspace: string;
  readonly tools: MediaTools;
  readonly outbound: Outbound;
  /** Largest source that is accepted, bytes. */
  readonly maxInputBytes: number;
  /** Longest audio that is accepted, seconds. */
  readonly maxAudioSeconds: number;
  readonly signal: AbortSignal;
  /** Awaited before so many bytes are written. */
  readonly makeRoom: (bytes: number) => Promise<void>;
  /** How much has been received, 0 … 1. */
  readonly onProgress?: (fraction: number) => void;
  /** Called for each received file: its size, and how much of it was fetched, bytes. */
  readonly onFetched?: (bytes: { readonly size: number; readonly fetched: number }) => void;
  readonly logger?: Logger;
  /** Default: requests of streams are limited by the number of segments alone. */
  readonly admitStreamRequest?: AdmitStreamRequest | undefined;
}

/** The audio has a gap where segments are missing. */
export interface MissingSound {
  /** Of segments that the playlist itself marks as missing (EXT-X-GAP). */
  readonly markedSeconds: number;
  /**
   * Segments that were empty, cut off or unreadable in three attempts, including segments with a
   * readable part.
   */
  readonly segments: number;
  /** What they lack. */
  readonly segmentsSeconds: number;
}

export interface LocalSource {
  readonly path: string;
  /** The server's name for it; `audio` where it has none. */
  readonly name: string;
  readonly sizeBytes: number;
  /** ffprobe's answer, if it was needed to decide what to fetch. */
  readonly probe?: Probe;
  /** Whether the wanted track is the only audio in it: one rendition of a stream. */
  readonly isTrack?: boolean;
  /** What of a stream's sound is not there, if anything is. */
  readonly missing?: MissingSound;
  /** Names of the transcripts whose track is in another rendition of the stream. */
  readonly elsewhere?: readonly string[];
}
