/** What a source at an address is fetched by, and what comes of it. */
import type { Logger } from 'soundpost-base/logger';
import type { NamedOutput } from 'soundpost-contract/output-request';
import type { BegunDownload } from 'soundpost-outbound/download';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Probe } from './probe.ts';
import type { MediaTools } from './run.ts';
import type { BegunJoin } from './streams/join/join.ts';

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
