/** What is in a file: container, audio tracks, tags, chapters, cover. Everything here is the file's own word. */
import { open } from 'node:fs/promises';
import { z } from 'zod';
import { fileArgument, inputGuards, MAX_COVER_PIXELS } from './command.ts';
import { blameInput, MediaFailure } from './failure.ts';
import { type MediaTools, requireRegularFile, runFfprobe } from './run.ts';
import { type Container, SNIFF_BYTES, sniffContainer } from './sniff.ts';

const PROBE_WALL_MS = 20_000;
const PROBE_STDOUT_BYTES = 8 * 1024 * 1024;

export interface AudioTrack {
  /** Place among the audio tracks, from 0: what callers choose by. */
  readonly index: number;
  /** Place among all streams: what ffmpeg's statistics name. */
  readonly streamIndex: number;
  /** ffmpeg's name, such as `aac` or `pcm_s16le`. */
  readonly codec: string;
  readonly profile: string | null;
  /** As the container writes it, `eng` or `en`; null when undetermined. */
  readonly language: string | null;
  /** 0 when the container announces a track that never comes. */
  readonly channels: number;
  /** Hz; 0 likewise. */
  readonly sampleRate: number;
  /** As the container says, often an average or a nominal value; null where it says nothing. */
  readonly bitrateKbps: number | null;
  /** Bits of a sample of a lossless codec; null for lossy ones, which have none. */
  readonly bitDepth: number | null;
  readonly isFloat: boolean;
  readonly isDefault: boolean;
  /** When the track begins, seconds after the container's first timestamp. */
  readonly startSeconds: number;
  /** How long the container says that this track is; null where it says nothing or only estimates. */
  readonly declaredSeconds: number | null;
  /** Whether that duration is the whole file's, which another track may fill. */
  readonly declaredForFile: boolean;
  readonly tags: Tags;
}

export type Tags = Readonly<Record<string, string>>;

export interface Chapter {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly title: string | null;
}

/** An attached picture that may be kept: JPEG or PNG of at most 36 megapixels. */
export interface Cover {
  readonly streamIndex: number;
  readonly mediaType: 'image/jpeg' | 'image/png';
  readonly width: number;
  readonly height: number;
}

export interface Probe {
  readonly container: Container;
  readonly sizeBytes: number;
  /** Best guess for the whole file, for progress and estimates; null where there is not even one. */
  readonly durationSeconds: number | null;
  readonly tracks: readonly [AudioTrack, ...AudioTrack[]];
  readonly tags: Tags;
  readonly chapters: readonly Chapter[];
  readonly cover: Cover | null;
  /** Whether there is nothing but audio and attached pictures. */
  readonly isAudioOnly: boolean;
}

const decimal = z.string().transform(Number).refine(Number.isFinite).optional().catch(undefined);
const tags = z.record(z.string(), z.string()).default({}).catch({});

const FfprobeStream = z.object({
  index: z.int(),
  codec_type: z.string().optional(),
  codec_name: z.string().optional(),
  profile: z.string().optional(),
  sample_fmt: z.string().optional(),
  sample_rate: decimal,
  channels: z.int().optional(),
  bit_rate: decimal,
  bits_per_sample: z.int().optional(),
  bits_per_raw_sample: decimal,
  start_time: decimal,
  duration: decimal,
  width: z.int().optional(),
  height: z.int().optional(),
  disposition: z
    .object({ default: z.int().default(0), attached_pic: z.int().default(0) })
    .partial()
    .default({}),
  tags,
});
type FfprobeStream = z.infer<typeof FfprobeStream>;

const FfprobeAnswer = z.object({
  format: z.object({ start_time: decimal, duration: decimal, tags }),
  streams: z.array(FfprobeStream).default([]),
  chapters: z.array(z.object({ start_time: decimal, end_time: decimal, tags })).default([]),
});
type FfprobeAnswer = z.infer<typeof FfprobeAnswer>;

const SHOWN_ENTRIES = [
  'format=start_time,duration:format_tags',
  'stream=index,codec_type,codec_name,profile,sample_fmt,sample_rate,channels,bit_rate,bits_per_sample,bits_per_raw_sample,start_time,duration,width,height',
  'stream_disposition=default,attached_pic:stream_tags',
  'chapter=start_time,end_time:chapter_tags=title',
].join(':');

/**
 * @param file a regular local file.
 * @throws {MediaFailure} INVALID_VIDEO when it is no media, EXTRACTION_FAILED `no audio stream` when it holds none.
 */
export async function probe(
  tools: MediaTools,
  file: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<Probe> {
  const { sizeBytes } = await requireRegularFile(file);
  const head = await readHead(file);
  const container = sniffContainer(head);
  if (container === undefined)
    throw new MediaFailure('INVALID_VIDEO', 'the first bytes are of no known container');

  const { answer, isEstimate } = await askFfprobe(tools, file, container, signal);
  const tracks = answer.streams
    .filter((stream) => stream.codec_type === 'audio')
    .map((stream, index) => asTrack(stream, index, { answer, container, isEstimate, head, sizeBytes }));
  const [first, ...others] = tracks;
  if (first === undefined) throw new MediaFailure('EXTRACTION_FAILED', 'no audio stream');
  return {
    container,
    sizeBytes,
    durationSeconds: answer.format.duration ?? first.declaredSeconds,
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

async function readHead(file: string): Promise<Uint8Array> {
  await using handle = await open(file, 'r');
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0);
  return buffer.subarray(0, bytesRead);
}

async function askFfprobe(
  tools: MediaTools,
  file: string,
  container: Container,
  signal: AbortSignal,
): Promise<{ answer: FfprobeAnswer; isEstimate: boolean }> {
  const args = [
    ...['-v', 'warning', '-of', 'json', '-show_entries', SHOWN_ENTRIES],
    ...inputGuards(container.demuxer),
    ...['-i', fileArgument(file)],
  ];
  try {
    const { stdout, stderr } = await runFfprobe(tools, args, {
      signal,
      wallLimitMs: PROBE_WALL_MS,
      maxStdoutBytes: PROBE_STDOUT_BYTES,
    });
    return {
      answer: FfprobeAnswer.parse(JSON.parse(stdout)),
      // The only place where libavformat says that a duration is not the container's (avformat's estimate_timings).
      isEstimate: stderr.includes('Estimating duration from bitrate'),
    };
  } catch (error) {
    throw signal.aborted
      ? error
      : blameInput(error, 'INVALID_VIDEO', `the ${container.name} file is corrupt or not supported`);
  }
}

interface TrackContext {
  readonly answer: FfprobeAnswer;
  readonly container: Container;
  readonly isEstimate: boolean;
  readonly head: Uint8Array;
  readonly sizeBytes: number;
}

function asTrack(stream: FfprobeStream, index: number, context: TrackContext): AudioTrack {
  const { language } = stream.tags;
  const bitsPerSecond = stream.bit_rate ?? Number(stream.tags.BPS ?? Number.NaN);
  return {
    index,
    streamIndex: stream.index,
    codec: stream.codec_name ?? 'unknown',
    profile: stream.profile ?? null,
    language: language === undefined || language === 'und' ? null : language,
    channels: stream.channels ?? 0,
    sampleRate: stream.sample_rate ?? 0,
    bitrateKbps: Number.isFinite(bitsPerSecond) && bitsPerSecond > 0 ? bitsPerSecond / 1000 : null,
    bitDepth: bitDepthOf(stream),
    isFloat: /^pcm_f/.test(stream.codec_name ?? ''),
    isDefault: stream.disposition.default === 1,
    startSeconds: startOffset(stream, context.answer),
    ...declaredDuration(stream, context),
    tags: stream.tags,
  };
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

function declaredDuration(
  stream: FfprobeStream,
  context: TrackContext,
): Pick<AudioTrack, 'declaredSeconds' | 'declaredForFile'> {
  const { answer, container } = context;
  const tagged = matroskaDuration(stream.tags);
  const ofTrack = tagged ?? stream.duration;
  const reported = ofTrack ?? answer.format.duration;
  const riff = riffOvershoot(context);
  if (container.declares === 'nowhere' || reported === undefined || (context.isEstimate && riff === 1)) {
    return { declaredSeconds: null, declaredForFile: false };
  }
  // Matroska's tag and a file's duration are ends, not lengths: they count from the file's beginning.
  const isEnd = tagged !== undefined || ofTrack === undefined;
  const offset = isEnd ? startOffset(stream, answer) : 0;
  return {
    declaredSeconds: Math.max(0, reported * riff - offset),
    declaredForFile: ofTrack === undefined,
  };
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

/**
 * How much larger a RIFF file says it is than it is: ffmpeg reports what is left of a truncated WAV or AVI as its
 * whole duration. Sizes of 0 and near 2 and 4 GiB are what programs write that cannot seek back.
 */
function riffOvershoot({ head, sizeBytes }: TrackContext): number {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.length < 12 || view.getUint32(0) !== 0x52494646) return 1;
  const declaredBytes = view.getUint32(4, true) + 8;
  const isPlaceholder = declaredBytes <= 8 || declaredBytes >= 0xffff0000 || declaredBytes >>> 16 === 0x7fff;
  return isPlaceholder ? 1 : Math.max(1, declaredBytes / sizeBytes);
}

const COVER_TYPES: Readonly<Record<string, Cover['mediaType']>> = { mjpeg: 'image/jpeg', png: 'image/png' };

function findCover(streams: readonly FfprobeStream[]): Cover | null {
  for (const { index, codec_name = '', disposition, width = 0, height = 0 } of streams) {
    const mediaType = COVER_TYPES[codec_name];
    // A picture over the limit is refused by the decoder, so that its size stays 0.
    const fits = width * height > 0 && width * height <= MAX_COVER_PIXELS;
    if (disposition.attached_pic === 1 && mediaType !== undefined && fits) {
      return { streamIndex: index, mediaType, width, height };
    }
  }
  return null;
}
