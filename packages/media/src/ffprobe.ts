/** ffprobe's answer about a file, parsed. */
import { OddJson, parseJson } from 'soundpost-base/json';
import { z } from 'zod';
import { fileArgument, inputGuards, MAX_STREAMS } from './command.ts';
import { blameInput, MediaFailure, ToolFailure } from './failure.ts';
import { type MediaTools, runFfprobe } from './run.ts';
import type { Container } from './sniff.ts';
import { textReader } from './tag-text.ts';

/** Of a processor: 400 streams of AAC take three seconds, and a decoder each. */
const PROBE_SECONDS = 20;
/** On a machine on which many others run. */
const PROBE_WALL_MS = 60_000;
const PROBE_STDOUT_BYTES = 8 * 1024 * 1024;

export type Tags = Readonly<Record<string, string>>;

const decimal = z.string().transform(Number).refine(Number.isFinite).optional().catch(undefined);
const tags = z.record(z.string(), z.string()).default({}).catch({});

const FfprobeStream = z.object({
  index: z.int(),
  codec_type: z.string().optional(),
  codec_name: z.string().optional(),
  codec_tag_string: z.string().optional(),
  codec_tag: z.string().optional(),
  id: z.string().optional(),
  profile: z.string().optional(),
  sample_fmt: z.string().optional(),
  sample_rate: decimal,
  channels: z.int().optional(),
  channel_layout: z.string().optional(),
  bit_rate: decimal,
  bits_per_sample: z.int().optional(),
  bits_per_raw_sample: decimal,
  start_time: decimal,
  duration: decimal,
  duration_ts: z.number().optional(),
  has_b_frames: z.int().optional(),
  width: z.int().optional(),
  height: z.int().optional(),
  disposition: z
    .object({ default: z.int().default(0), attached_pic: z.int().default(0) })
    .partial()
    .default({}),
  side_data_list: z
    .array(z.object({ side_data_type: z.string().default('') }))
    .default([])
    .catch([]),
  tags,
});
export type FfprobeStream = z.infer<typeof FfprobeStream>;

const FfprobeAnswer = z.object({
  format: z.object({ start_time: decimal, duration: decimal, tags }),
  streams: z.array(FfprobeStream).default([]),
  chapters: z.array(z.object({ start_time: decimal, end_time: decimal, tags })).default([]),
  library_versions: z.array(z.object({ name: z.string(), major: z.int() })).default([]),
});
export type FfprobeAnswer = z.infer<typeof FfprobeAnswer>;

const SHOWN_ENTRIES = [
  'format=start_time,duration:format_tags',
  'stream=index,id,codec_type,codec_name,codec_tag_string,codec_tag,profile,sample_fmt,sample_rate,channels,channel_layout,bit_rate,bits_per_sample,bits_per_raw_sample,start_time,duration,duration_ts,has_b_frames,width,height',
  'stream_disposition=default,attached_pic:stream_tags:stream_side_data=side_data_type',
  'chapter=start_time,end_time:chapter_tags=title:library_version=name,major',
].join(':');

interface Probed {
  readonly answer: FfprobeAnswer;
  /** Whether the durations come from a bitrate. */
  readonly isEstimate: boolean;
}

/** Whose streams become known, or are described, with their first packets only. */
const PACKETS_DESCRIBE = new Set(['mpegts', 'mpeg', 'flv']);

/**
 * Looks further, up to 64 MiB, where sound can begin late.
 * @param file a regular local file of that container.
 */
export async function askFfprobe(
  tools: MediaTools,
  file: string,
  container: Container,
  signal: AbortSignal,
): Promise<Probed & { readonly isLate: boolean }> {
  const asked = await ask(tools, { file, container, signal });
  const probed = { ...asked, answer: await withPictures(tools, { file, container, signal }, asked.answer) };
  if (!PACKETS_DESCRIBE.has(container.demuxer) || isHeard(probed.answer)) return { ...probed, isLate: false };
  const further = await ask(tools, { file, container, signal, isLate: true });
  return { ...further, isLate: isHeard(further.answer) };
}

/** Without samples, the channels are what the container says: FLV has stereo for any AAC. */
function isHeard({ streams }: FfprobeAnswer): boolean {
  const sounds = streams.filter(({ codec_type }) => codec_type === 'audio');
  return (
    sounds.length > 0 &&
    sounds.every(({ channels = 0, sample_fmt }) => channels > 0 && sample_fmt !== undefined)
  );
}

/** Packets that are looked at for a picture before the sound. */
const FIRST_PACKETS = 50;

/** Of codecs that Matroska names itself. */
const NATIVE_TAG = '0x0000';

const Packets = z.object({ packets: z.array(z.object({ stream_index: z.int(), pts_time: decimal })) });

/**
 * ASF, and Matroska of Video for Windows, keep one time of a picture, which ffmpeg takes for the
 * time of its decoding. It does not know then when the first of B-frames is shown, and has their
 * stream begin with the others. Here it does.
 */
async function withPictures(
  tools: MediaTools,
  question: Question,
  answer: FfprobeAnswer,
): Promise<FfprobeAnswer> {
  const { streams, format } = answer;
  const { demuxer } = question.container;
  const isUnknown = ({ has_b_frames = 0, codec_tag }: FfprobeStream): boolean =>
    has_b_frames > 0 && (demuxer === 'asf' || (demuxer === 'matroska' && codec_tag !== NATIVE_TAG));
  if (!format.start_time || !streams.some(isUnknown)) return answer;
  const { stdout } = await run(tools, question, [
    ...['-fflags', '+genpts', '-read_intervals', `%+#${FIRST_PACKETS}`],
    ...['-show_entries', 'packet=stream_index,pts_time'],
  ]);
  const { packets } = Packets.parse(parseJson(stdout));
  const begun = streams.map((stream) => {
    const shown = packets.flatMap(({ stream_index, pts_time = Number.POSITIVE_INFINITY }) =>
      isUnknown(stream) && stream_index === stream.index ? pts_time : [],
    );
    return { ...stream, start_time: Math.min(stream.start_time ?? format.start_time ?? 0, ...shown) };
  });
  const start_time = Math.min(format.start_time, ...begun.map((stream) => stream.start_time));
  return { ...answer, streams: begun, format: { ...format, start_time } };
}

interface Question {
  readonly file: string;
  readonly container: Container;
  readonly signal: AbortSignal;
  readonly isLate?: boolean;
}

async function ask(tools: MediaTools, question: Question): Promise<Probed> {
  const { stdout, stderr } = await run(tools, question, ['-show_entries', SHOWN_ENTRIES]);
  return {
    answer: await withText(readAnswer(stdout), question.container.demuxer),
    // Only here libavformat says that a duration is estimated (avformat's estimate_timings).
    isEstimate: stderr.includes('Estimating duration from bitrate'),
  };
}

async function run(
  tools: MediaTools,
  { file, container, signal, isLate }: Question,
  wanted: readonly string[],
): Promise<Awaited<ReturnType<typeof runFfprobe>>> {
  const args = [
    ...['-v', 'warning', '-of', 'json=sv=ignore', ...wanted],
    ...inputGuards(container.demuxer, isLate),
    ...['-i', fileArgument(file)],
  ];
  try {
    return await runFfprobe(tools, args, {
      signal,
      wallLimitMs: PROBE_WALL_MS,
      maxCpuSeconds: PROBE_SECONDS,
      maxStdoutBytes: PROBE_STDOUT_BYTES,
      // Tags are bytes until their character set is known.
      encoding: 'latin1',
      access: { reads: [file], writes: [] },
    });
  } catch (error) {
    const isCrowded = error instanceof ToolFailure && CROWDED.test(error.stderr);
    throw signal.aborted
      ? error
      : blameInput(
          error,
          'INVALID_VIDEO',
          isCrowded
            ? `the file has too many streams: at most ${MAX_STREAMS}, or fewer if their codecs need much memory; remove some`
            : `the ${container.name} file is corrupt or not supported: check that it plays, or convert it first`,
        );
  }
}

/** Too many for ffmpeg, or for the memory: of AAC, some 600 decoders. */
const CROWDED =
  /exceeds max_streams|parameters for stream \d{3}.*Cannot allocate memory|codec for input stream \d{3}/s;

/** A title is a stranger's, and so is how many there are. */
export function readAnswer(stdout: string): FfprobeAnswer {
  try {
    return withoutUnknown(FfprobeAnswer.parse(parseJson(stdout)));
  } catch (error) {
    if (!(error instanceof OddJson)) throw error;
    const details = 'the file has too many tags or chapters; remove some';
    throw new MediaFailure('INVALID_VIDEO', details, { cause: error });
  }
}

/** ISO/IEC 14496-12, 8.4.2.3: "not known", which ffmpeg 5.1 takes for a number. */
const UNKNOWN_DURATION = 0xffff_ffff;

function withoutUnknown(answer: FfprobeAnswer): FfprobeAnswer {
  const isUnknown = ({ duration_ts }: FfprobeStream): boolean => duration_ts === UNKNOWN_DURATION;
  if (!answer.streams.some(isUnknown)) return answer;
  const streams = answer.streams.map((each) => (isUnknown(each) ? { ...each, duration: undefined } : each));
  // The duration of the longest stream.
  return { ...answer, streams, format: { ...answer.format, duration: undefined } };
}

async function withText(answer: FfprobeAnswer, demuxer: string): Promise<FfprobeAnswer> {
  const { format, streams, chapters } = answer;
  const read = await textReader(
    [format, ...streams, ...chapters].map((each) => each.tags),
    demuxer,
  );
  const readable = <T extends { readonly tags: Tags }>(tagged: T): T => ({
    ...tagged,
    tags: Object.fromEntries(Object.entries(tagged.tags).map(([key, value]) => [read(key), read(value)])),
  });
  return {
    ...answer,
    format: readable(format),
    streams: streams.map(readable),
    chapters: chapters.map(readable),
  };
}
