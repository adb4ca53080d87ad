/**
 * Audio of files, addresses and streams: ffmpeg, confined, on a source that was probed first. Needs
 * no server and no Redis. Declares all that its signatures use, so that they stand alone.
 */
import { readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'soundpost-base/logger';
import { ServiceError } from 'soundpost-contract/errors';
import { type NamedOutput, OutputsRequest, outputsOf } from 'soundpost-contract/output-request';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import { createOutbound } from 'soundpost-outbound/outbound';
import { detectSandbox, findTools } from './abilities.ts';
import { extractAudio } from './extract.ts';
import { MediaFailure, ToolFailure } from './failure.ts';
import { packagedTools } from './packaged-tools.ts';
import { planAny } from './plan.ts';
import { probe } from './probe.ts';
import type { MediaTools } from './run.ts';
import { fetchSource } from './source.ts';
import type { LocalSource } from './source-request.ts';
import { streamKindOf } from './streams/detect.ts';

export interface MediaOptions {
  /**
   * ffmpeg, a path or a name on the PATH; ffprobe must be in its folder. Default: the ffmpeg of
   * the optional package soundpost-tools-…, else `ffmpeg`.
   */
  readonly ffmpegPath?: string;
  /** Folder for fetched data. Default: the system's folder for temporary files. */
  readonly temporaryFolder?: string;
  /** Private addresses that may be reached: `host-or-CIDR:port`, comma-separated. Default: none. */
  readonly allow?: string;
  /** Ports that may be reached at public addresses. Default: 80, 443, 8080, 8443. */
  readonly ports?: readonly number[];
  /** Largest source that is fetched, bytes. Default: 5 GiB. */
  readonly maxInputBytes?: number;
  /** Longest audio that is accepted, seconds. Default: 6 hours. */
  readonly maxAudioSeconds?: number;
}

/** Fields mean the same as in a job's `output` (docs/reference/api.md), ranges and defaults. */
export interface Output {
  /** The target, in an existing folder. It replaces an existing file once it is complete. */
  readonly path: string;
  readonly format: 'mp3' | 'aac' | 'm4a' | 'm4b' | 'flac' | 'wav' | 'ogg' | 'opus' | 'voice' | 'waveform';
  readonly quality?: 'low' | 'medium' | 'high' | 'extreme';
  /** `192k` */
  readonly bitrate?: string;
  readonly copy?: 'auto' | 'never';
  readonly normalize?: boolean;
  /** LUFS */
  readonly loudness?: number;
  /** Index among the audio tracks, from 0, a language, or `mix`: all of them. */
  readonly track?: number | string;
  /** Seconds. */
  readonly start?: number;
  /** Seconds. */
  readonly end?: number;
  readonly timeline?: 'source' | 'audio';
  /** Needs `timeline: 'audio'`. */
  readonly trimSilence?: boolean;
  readonly acceptTruncated?: boolean;
  readonly channels?: 1 | 2;
  /** That channel alone, as mono: an index from 0. */
  readonly channel?: 'left' | 'right' | number;
  /** Hz */
  readonly sampleRate?: number;
  readonly preserveMetadata?: boolean;
  /** Of a waveform. */
  readonly pixelsPerSecond?: number;
}

export interface MadeFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Counted from samples or packets. */
  readonly durationSeconds: number;
  /** Of its first sample, on the source's clock. */
  readonly startOffsetSeconds: number;
  /** Silence that was inserted where the source has gaps. */
  readonly filledSeconds: number;
  /** ffmpeg's name: mp3, aac, flac, pcm_s16le … */
  readonly codec: string;
  readonly channels: number;
  /** Hz */
  readonly sampleRate: number;
  readonly bitrateKbps: number;
  /** Whether the source's packets were copied. */
  readonly copied: boolean;
  /** SILENT: below −60 dBFS. Others: mono is one of two channels (docs/reference/api.md). */
  readonly warnings: readonly ('SILENT' | 'ONE_SIDED' | 'CANCELLED_OUT')[];
  /** null unless a loudness was requested. */
  readonly loudness: {
    readonly inputLufs: number;
    readonly outputLufs: number;
    readonly truePeakDbtp: number;
    readonly gainDb: number;
  } | null;
}

export interface Extracted {
  /** In the order of the outputs. */
  readonly files: readonly MadeFile[];
  /** Where the first output's track ends on the source's clock, seconds. */
  readonly sourceSeconds: number;
  /** The missing part of an accepted truncated file; null if it is whole. */
  readonly truncated: string | null;
}

export interface ExtractOptions {
  /** Aborts it: the fetch, or ffmpeg with all its processes. */
  readonly signal?: AbortSignal;
  /** How much of a step is done, 0 … 1. */
  readonly onProgress?: (step: 'downloading' | 'extracting' | 'normalizing', fraction: number) => void;
}

export interface Media {
  /**
   * What keeps ffmpeg from files and network. Landlock: by the starter of soundpost-tools-….
   * bubblewrap: it is installed, with user namespaces. `none`: then only use files that you trust.
   */
  readonly confinement: 'landlock' | 'bubblewrap' | 'none';
  /**
   * Makes files of one source.
   * @param source a path, or an http, https or file address, also of an HLS or DASH stream
   * @throws {MediaError}; the signal's reason
   */
  extract(source: string | URL, outputs: readonly Output[], options?: ExtractOptions): Promise<Extracted>;
  /** Closes the connections that are kept alive. */
  close(): Promise<void>;
}

export type MediaErrorCode =
  /** The outputs request what does not exist; `details` names field and rule. */
  | 'INVALID_OUTPUT'
  /** The address may not be reached. */
  | 'INVALID_SOURCE'
  | 'DOWNLOAD_FAILED'
  /** No media, or none with audio. */
  | 'INVALID_VIDEO'
  | 'EXTRACTION_FAILED'
  /** ffmpeg is missing, or failed because of this machine. */
  | 'TOOL_FAILED';

export class MediaError extends Error {
  override readonly name = 'MediaError';
  readonly code: MediaErrorCode;
  readonly details: string;

  constructor(code: MediaErrorCode, details: string, options?: { cause?: unknown }) {
    super(`${code}: ${details}`, options);
    this.code = code;
    this.details = details;
  }
}

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);

const GIB = 1024 ** 3;
const HOUR_SECONDS = 3600;
const PORTS = [80, 443, 8080, 8443];

/** Logs nothing: errors say what there is to know. */
const silent = Object.fromEntries(
  ['debug', 'info', 'warn', 'error'].map((level) => [level, () => undefined]),
) as unknown as Logger;

/** Finds ffmpeg and what confines it. @throws {MediaError} TOOL_FAILED where there is no ffmpeg */
export async function openMedia(options: MediaOptions = {}): Promise<Media> {
  const { temporaryFolder = tmpdir(), maxInputBytes = 5 * GIB, maxAudioSeconds = 6 * HOUR_SECONDS } = options;
  const own = await packagedTools(version, searchPath());
  const found = findTools(options.ffmpegPath, searchPath(), own.folder);
  if (found.tools === undefined) throw new MediaError('TOOL_FAILED', found.missing);
  const sandbox = await detectSandbox(found.tools);
  const tools: MediaTools = { ...found.tools, sandbox };
  const outbound = createOutbound({
    allow: parseAllowRules(options.allow ?? ''),
    ports: options.ports ?? PORTS,
    logger: silent,
    userAgent: 'soundpost-media',
  });
  return {
    confinement: sandbox.level,
    async extract(source, outputs, { signal = new AbortController().signal, onProgress } = {}) {
      const wanted = await requestOf(outputs);
      const [first, ...others] = wanted;
      const workspace = await mkdtemp(join(temporaryFolder, 'soundpost-'));
      try {
        signal.throwIfAborted();
        const limits = { maxInputBytes, maxAudioSeconds };
        const local = await localFile(source, (url) =>
          fetchSource({
            ...{ url, outputs: wanted, workspace, tools, outbound, ...limits, signal },
            makeRoom: async () => undefined,
            onProgress: (fraction) => onProgress?.('downloading', fraction),
          }),
        );
        const probed = local.probe ?? (await probe(tools, local.path, { signal }));
        const place = (name: string): string => join(workspace, `output-${name}`);
        const planned = (output: NamedOutput) => ({
          plan: planAny(local.isTrack ? { ...output, track: undefined } : output, probed),
          path: place(output.name),
        });
        let step: 'extracting' | 'normalizing' = 'extracting';
        const { files, sourceSeconds, truncated } = await extractAudio({
          ...{ tools, input: local.path, probe: probed, workspace, signal, maxAudioSeconds },
          outputs: [planned(first), ...others.map(planned)],
          onStep: (begun) => {
            step = begun === 'normalizing_audio' ? 'normalizing' : 'extracting';
          },
          onProgress: (fraction) => onProgress?.(step, fraction),
        });
        const made: MadeFile[] = [];
        for (const [nth, file] of files.entries()) {
          const path = resolve(outputs[nth]?.path ?? '');
          await move(file.path, path);
          made.push(madeFile(file, path));
        }
        return { files: made, sourceSeconds, truncated };
      } catch (error) {
        throw signal.aborted ? signal.reason : asMediaError(error);
      } finally {
        await rm(workspace, { recursive: true, force: true });
      }
    },
    close: () => outbound.close(),
  };
}

function searchPath(): string {
  // biome-ignore lint/style/noProcessEnv: of a library the environment is its user's
  return process.env.PATH ?? '';
}

/** The outputs as a job has them. @throws {MediaError} INVALID_OUTPUT */
async function requestOf(outputs: readonly Output[]): Promise<readonly [NamedOutput, ...NamedOutput[]]> {
  const asked = outputs.map(({ path: _, ...output }, nth) => ({ ...output, name: `output${nth}` }));
  const { data, error } = OutputsRequest.safeParse(asked);
  const [issue] = error?.issues ?? [];
  if (data === undefined) throw faultOf(issue?.path ?? [], issue?.message ?? '');
  const paths = outputs.map(({ path }) => resolve(path));
  for (const [nth, output] of data.entries()) {
    const path = paths[nth] ?? '';
    // Fields of a job that only a service can serve.
    if (output.format === 'transcript')
      throw faultOf([nth, 'format'], 'must not be transcript: a service makes it');
    if (output.destination !== undefined)
      throw faultOf([nth, 'destination'], 'must not be there: a service puts it');
    if (paths.indexOf(path) < nth) throw faultOf([nth, 'path'], `${path} is the path of another output`);
    const isFolder = await stat(dirname(path)).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isFolder) throw faultOf([nth, 'path'], `there is no folder ${dirname(path)}`);
  }
  return outputsOf({ outputs: data });
}

function faultOf(path: readonly PropertyKey[], message: string): MediaError {
  return new MediaError('INVALID_OUTPUT', `${['outputs', ...path].join('.')}: ${message}`);
}

async function localFile(
  source: string | URL,
  fetched: (url: string) => Promise<LocalSource>,
): Promise<Pick<LocalSource, 'path' | 'probe' | 'isTrack'>> {
  const address = String(source);
  if (/^https?:/i.test(address)) return fetched(address);
  const path = resolve(/^file:/i.test(address) ? fileURLToPath(address) : address);
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  if (!isFile) throw new MediaError('INVALID_SOURCE', `there is no file at ${path}`);
  if ((await streamKindOf(path)) !== undefined)
    throw new MediaError(
      'INVALID_SOURCE',
      'the file is a playlist, without the sound itself: give its address',
    );
  return { path };
}

/** All or nothing, also across file systems. */
async function move(from: string, to: string): Promise<void> {
  const beside = await mkdtemp(join(dirname(to), '.soundpost-'));
  try {
    const whole = join(beside, 'file');
    await rename(from, whole).catch(() => copyFile(from, whole));
    await rename(whole, to);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

function madeFile(file: Omit<MadeFile, 'path'>, path: string): MadeFile {
  const { sizeBytes, durationSeconds, startOffsetSeconds, filledSeconds } = file;
  const { codec, channels, sampleRate, bitrateKbps, copied, warnings, loudness } = file;
  return {
    ...{ path, sizeBytes, durationSeconds, startOffsetSeconds, filledSeconds },
    ...{ codec, channels, sampleRate, bitrateKbps, copied, warnings, loudness },
  };
}

function asMediaError(cause: unknown): unknown {
  if (cause instanceof MediaFailure) return new MediaError(cause.code, cause.details, { cause });
  if (cause instanceof OutboundRefused) return new MediaError('INVALID_SOURCE', cause.reason, { cause });
  if (cause instanceof OutboundFailed) return new MediaError('DOWNLOAD_FAILED', cause.message, { cause });
  if (cause instanceof ToolFailure) return new MediaError('TOOL_FAILED', cause.message, { cause });
  if (cause instanceof ServiceError)
    return new MediaError('DOWNLOAD_FAILED', cause.details ?? cause.message, { cause });
  return cause;
}
