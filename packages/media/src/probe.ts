/** A file's contents by its own metadata: container, audio tracks, tags, chapters, cover. */
import { open } from 'node:fs/promises';
import { DECODED_CODECS, MAX_COVER_PIXELS } from './command.ts';
import { idOf, isEncrypted } from './encryption.ts';
import { encrypted, MediaFailure } from './failure.ts';
import { askFfprobe, type FfprobeAnswer, type FfprobeStream, type Tags } from './ffprobe.ts';
import { readFileApart } from './reading/reader.ts';
import { type MediaTools, requireRegularFile } from './run.ts';
import { type Container, sniffContainer } from './sniff.ts';

export interface AudioTrack {
  /** Index among the audio tracks, from 0: callers choose by it. */
  readonly index: number;
  /** Index among all streams: ffmpeg's statistics use it. */
  readonly streamIndex: number;
  /** ffmpeg's name, such as `aac` or `pcm_s16le`. */
  readonly codec: string;
  readonly profile: string | null;
  /** As the container writes it, `eng` or `en`; null when undetermined. */
  readonly language: string | null;
  /** 0 when the container declares a track that never comes. */
  readonly channels: number;
  /** ffmpeg's name, such as `5.1(side)`, or labels, `FL+FR+LFE`; null where nothing names them. */
  readonly layout: string | null;
  /** Hz; 0 likewise. */
  readonly sampleRate: number;
  /** As the container says, often an average or a nominal value; null where it says nothing. */
  readonly bitrateKbps: number | null;
  /** Bits of a sample of a lossless codec; null for lossy ones, which have none. */
  readonly bitDepth: number | null;
  readonly isFloat: boolean;
  readonly isDefault: boolean;
  readonly isEncrypted: boolean;
  /** Whether a decoder that we allow knows its codec. */
  readonly isDecodable: boolean;
  /** When the track begins, seconds after the container's first timestamp. */
  readonly startSeconds: number;
  /** The track's length by the container; null if missing or only estimated. */
  readonly declaredSeconds: number | null;
  readonly tags: Tags;
  /** Of a mix: the tracks that it is made of; default it is a track of the file. */
  readonly mixed?: readonly AudioTrack[];
  /** Whether its samples follow each other whatever their timestamps say; default false. */
  readonly isContinuous?: boolean;
}

interface Chapter {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly title: string | null;
}

/** An attached picture that may be kept: JPEG or PNG of at most 36 megapixels. */
interface Cover {
  readonly streamIndex: number;
  readonly mediaType: 'image/jpeg' | 'image/png';
  readonly width: number;
  readonly height: number;
}

export interface Probe {
  readonly container: Container;
  readonly sizeBytes: number;
  /** Whether all sound is only known beyond what a look at the file's head reads; default false. */
  readonly isLate?: boolean;
  /** Where the file's timestamp 0 is on the source's clock. */
  readonly zeroSeconds: number;
  /** When each stream begins on the source's clock, by its index. */
  readonly beginnings: ReadonlyMap<number, number>;
  /** Whether ffmpeg counts from the earliest stream in use, not of the file. */
  readonly isCountedByUse: boolean;
  /** The longest hole in its timestamps that is none of its clock, if one is known; default 0. */
  readonly longestGapSeconds?: number;
  /** Best guess for the whole file, for progress and estimates; null if there is none. */
  readonly durationSeconds: number | null;
  readonly tracks: readonly [AudioTrack, ...AudioTrack[]];
  readonly tags: Tags;
  readonly chapters: readonly Chapter[];
  readonly cover: Cover | null;
  /** Whether there is nothing but audio and attached pictures. */
  readonly isAudioOnly: boolean;
}

/** Facts about a file from other sources, such as the playlist of a stream. */
type KnownOfFile =
  /** Where it begins on the source's clock, and how long it is. */
  | {
      readonly startSeconds: number;
      readonly durationSeconds: number;
      /** The longest hole that its timestamps have. */
      readonly longestGapSeconds: number;
    }
  /** Where its timestamp 0 is on the source's clock. */
  | { readonly zeroSeconds: number };

/** ffmpeg's `AVFMT_TS_DISCONT`. */
const TIMESTAMPS_JUMP = new Set(['mpegts', 'mpeg', 'ogg']);

/** libavformat's; 60 came with ffmpeg 6.0. */
function formatVersion({ library_versions }: FfprobeAnswer): number {
  return library_versions.find(({ name }) => name === 'libavformat')?.major ?? 0;
}

/**
 * @param file a regular local file.
 * @throws {MediaFailure} INVALID_VIDEO for no media, EXTRACTION_FAILED `no audio stream` for no
 * audio.
 */
export async function probe(
  tools: MediaTools,
  file: string,
  { signal, known }: { readonly signal: AbortSignal; readonly known?: KnownOfFile },
): Promise<Probe> {
  const { sizeBytes } = await requireRegularFile(file);
  const container = await sniffFile(file, sizeBytes);
  const local = { path: file, demuxer: container.demuxer, sizeBytes };
  const reading = { signal, charge: tools.meter, owner: tools.owner };
  const encryptedIds = await readFileApart('encryptedStreams', local, reading);
  const plain = await readFileApart('plainFile', local, reading);
  const asking =
    plain === null
      ? askFfprobe(tools, file, container, signal)
      : Promise.resolve({ answer: plain, isEstimate: false, isLate: false });
  const asked = await asking.catch(async (error) => {
    if (!(error instanceof MediaFailure)) throw error;
    // If it was cut off before or within its index, or needs a key, report that instead.
    const missing = await readFileApart('missingEnd', local, reading);
    if (missing !== null) throw new MediaFailure('INVALID_VIDEO', missing, { cause: error });
    throw encryptedIds.size > 0 ? encrypted('the audio needs a key') : error;
  });
  const { answer, isEstimate, isLate } = asked;
  const startSeconds = startOf(known, answer);
  const tracks = answer.streams
    .filter((stream) => stream.codec_type === 'audio')
    .map((stream, index) =>
      asTrack(stream, index, { answer, container, isEstimate, startSeconds, encryptedIds }),
    );
  const [first, ...others] = tracks;
  if (tracks.every(({ channels }) => channels === 0)) {
    const missing = await readFileApart('missingEnd', local, reading);
    if (missing !== null) throw new MediaFailure('INVALID_VIDEO', missing);
  }
  if (first === undefined) {
    const pictures = new Set(answer.streams.filter(({ codec_type }) => codec_type === 'video').map(idOf));
    // ffmpeg detects the codec of an undescribed stream by its contents.
    if ([...encryptedIds].some((id) => !pictures.has(id))) throw encrypted('the audio needs a key');
    throw new MediaFailure('EXTRACTION_FAILED', 'no audio stream');
  }
  return {
    container,
    sizeBytes,
    isLate,
    zeroSeconds: startSeconds - (answer.format.start_time ?? 0),
    beginnings: new Map(
      answer.streams.map((stream) => [stream.index, startSeconds + startOffset(stream, answer)]),
    ),
    isCountedByUse: TIMESTAMPS_JUMP.has(container.demuxer) && formatVersion(answer) >= 60,
    longestGapSeconds: known && 'longestGapSeconds' in known ? known.longestGapSeconds : 0,
    durationSeconds:
      (known && 'durationSeconds' in known ? known.durationSeconds : answer.format.duration) ??
      first.declaredSeconds,
    tracks: [first, ...others],
    tags: answer.format.tags,
    chapters: answer.chapters.map(({ start_time = 0, end_time = start_time, tags: { title } }) => ({
      startSeconds: start_time,
      endSeconds: end_time,
      title: title ?? null,
    })),
    cover: findCover(answer.streams),
    isAudioOnly: answer.streams.every(
      ({ codec_type, disposition }) => codec_type === 'audio' || disposition.attached_pic === 1,
    ),
  };
}

/** The file's start on the source's clock: second 0 if unknown, whatever its timestamps. */
function startOf(known: KnownOfFile | undefined, { format }: FfprobeAnswer): number {
  if (known === undefined) return 0;
  return 'startSeconds' in known
    ? known.startSeconds
    : Math.max(0, known.zeroSeconds + (format.start_time ?? 0));
}

async function sniffFile(file: string, sizeBytes: number): Promise<Container> {
  await using handle = await open(file, 'r');
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(end - start), 0, end - start, start);
    return buffer.subarray(0, bytesRead);
  };
  const source = { sizeBytes, read };
  const container = await sniffContainer(source);
  if (container !== undefined) return container;
  const { nameOther } = await import('./other-files.ts');
  throw new MediaFailure('INVALID_VIDEO', await nameOther(source));
}

function asTrack(
  stream: FfprobeStream,
  index: number,
  context: TrackContext & { readonly startSeconds: number },
): AudioTrack {
  const { language } = stream.tags;
  const bitsPerSecond = stream.bit_rate ?? Number(stream.tags.BPS ?? Number.NaN);
  return {
    index,
    streamIndex: stream.index,
    codec: stream.codec_name ?? tagName(stream),
    profile: stream.profile ?? null,
    language: language === undefined || language === 'und' ? null : language,
    channels: stream.channels ?? 0,
    layout: layoutNamed(stream.channel_layout),
    sampleRate: stream.sample_rate ?? 0,
    bitrateKbps: Number.isFinite(bitsPerSecond) && bitsPerSecond > 0 ? bitsPerSecond / 1000 : null,
    bitDepth: bitDepthOf(stream),
    isFloat: /^pcm_f/.test(stream.codec_name ?? ''),
    isDefault: stream.disposition.default === 1,
    isEncrypted: isEncrypted(stream, context.container, context.answer.format.tags, context.encryptedIds),
    isDecodable: DECODED_CODECS.has(stream.codec_name ?? ''),
    startSeconds: context.startSeconds + startOffset(stream, context.answer),
    declaredSeconds: declaredDuration(stream, context),
    tags: stream.tags,
  };
}

/** A codec that ffmpeg has no name for is called as the container does, such as `apac`. */
function tagName({ codec_tag_string = '', codec_tag = '0x0' }: FfprobeStream): string {
  if (/^\w[\w .-]{3}$/.test(codec_tag_string)) return codec_tag_string.trim();
  return /^0x0+$/.test(codec_tag) ? 'unknown' : codec_tag;
}

/** ffprobe says `unknown`, `4 channels` or `ambisonic 1` for layouts that are not speakers. */
function layoutNamed(described = 'unknown'): string | null {
  const labels = /^\d+ channels \((.*)\)$/.exec(described)?.[1] ?? described;
  return /^unknown$|^\d+ channels$|^ambisonic/.test(labels) ? null : labels;
}

/** Lossy codecs decode to floating point and have no depth; ffprobe says 0 or nothing for them. */
function bitDepthOf(stream: FfprobeStream): number | null {
  const bits = stream.bits_per_raw_sample || stream.bits_per_sample || 0;
  // G.711 and ADPCM are 8 and 4 bits of a lossy code, not of a sample.
  const isLossless = /^(pcm_(?!alaw|mulaw|vidc)|flac$|alac$|wavpack$|ape$|tta$|truehd$|mlp$|dts$)/.test(
    stream.codec_name ?? '',
  );
  return isLossless && bits > 0 ? bits : null;
}

const COVER_TYPES: Readonly<Record<string, Cover['mediaType']>> = { mjpeg: 'image/jpeg', png: 'image/png' };

function findCover(streams: readonly FfprobeStream[]): Cover | null {
  for (const { index, codec_name = '', disposition, width = 0, height = 0 } of streams) {
    const mediaType = COVER_TYPES[codec_name];
    // The decoder refuses a picture over the limit, so that its size stays 0.
    const fits = width * height > 0 && width * height <= MAX_COVER_PIXELS;
    if (disposition.attached_pic === 1 && mediaType !== undefined && fits) {
      return { streamIndex: index, mediaType, width, height };
    }
  }
  return null;
}

// A track's length by the container, for limits, estimates and progress; answers use counted
// lengths.

interface TrackContext {
  readonly answer: FfprobeAnswer;
  readonly container: Container;
  /** Whether ffprobe's durations come from a bitrate. */
  readonly isEstimate: boolean;
  /** Of streams, by the container's own numbers. */
  readonly encryptedIds: ReadonlySet<number>;
}

/** null where the container says nothing. */
function declaredDuration(stream: FfprobeStream, context: TrackContext): number | null {
  const { answer, container, isEstimate } = context;
  const tagged = matroskaDuration(stream.tags);
  const ofTrack = tagged ?? stream.duration;
  const reported = ofTrack ?? answer.format.duration;
  if (container.declares === 'nowhere' || reported === undefined || isEstimate) return null;
  // Matroska's tag and a file's duration are ends, not lengths: they count from its beginning.
  const isEnd = tagged !== undefined || ofTrack === undefined;
  return Math.max(0, reported - (isEnd ? startOffset(stream, answer) : 0));
}

/** When a track begins, seconds after the file. */
function startOffset(stream: FfprobeStream, answer: FfprobeAnswer): number {
  return Math.max(0, (stream.start_time ?? 0) - (answer.format.start_time ?? 0));
}

/** mkvmerge and ffmpeg write each track's duration as a tag: `00:00:10.985000000`. */
function matroskaDuration(streamTags: Tags): number | undefined {
  const match = /^(\d+):(\d\d):(\d\d(?:\.\d+)?)$/.exec(streamTags.DURATION ?? '');
  return match ? Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3]) : undefined;
}
