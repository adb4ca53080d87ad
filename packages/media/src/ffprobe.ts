/** ffprobe's answer about a file, parsed. */
import { OddJson, parseJson } from 'soundpost-base/json';
import { z } from 'zod';
import { fileArgument, inputGuards, MAX_STREAMS } from './command.ts';
import { blameInput, MediaFailure, ToolFailure } from './failure.ts';
import { type MediaTools, runFfprobe } from './run.ts';
import type { Container } from './sniff.ts';
import { textReader } from './tag-text.ts';

const PROBE_WALL_MS = 20_000;
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
  'stream=index,id,codec_type,codec_name,codec_tag_string,codec_tag,profile,sample_fmt,sample_rate,channels,channel_layout,bit_rate,bits_per_sample,bits_per_raw_sample,start_time,duration,width,height',
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
  const probed = await ask(tools, { file, container, signal });
  if (!PACKETS_DESCRIBE.has(container.demuxer) || isHeard(probed.answer)) return { ...probed, isLate: false };
  const further = await ask(tools, { file, container, signal, isLate: true });
  return { ...further, isLate: isHeard(further.answer) };
}

function isHeard({ streams }: FfprobeAnswer): boolean {
  const sounds = streams.filter(({ codec_type }) => codec_type === 'audio');
  return sounds.length > 0 && sounds.every(({ channels = 0 }) => channels > 0);
}

interface Question {
  readonly file: string;
  readonly container: Container;
  readonly signal: AbortSignal;
  readonly isLate?: boolean;
}

async function ask(tools: MediaTools, { file, container, signal, isLate }: Question): Promise<Probed> {
  const args = [
    ...['-v', 'warning', '-of', 'json=sv=ignore', '-show_entries', SHOWN_ENTRIES],
    ...inputGuards(container.demuxer, isLate),
    ...['-i', fileArgument(file)],
  ];
  try {
    const { stdout, stderr } = await runFfprobe(tools, args, {
      signal,
      wallLimitMs: PROBE_WALL_MS,
      maxStdoutBytes: PROBE_STDOUT_BYTES,
      // Tags are bytes until their character set is known.
      encoding: 'latin1',
      access: { reads: [file], writes: [] },
    });
    return {
      answer: await withText(readAnswer(stdout), container.demuxer),
      // Only here libavformat says that a duration is estimated (avformat's estimate_timings).
      isEstimate: stderr.includes('Estimating duration from bitrate'),
    };
  } catch (error) {
    if (error instanceof ToolFailure && /exceeds max_streams/.test(error.stderr))
      throw new MediaFailure('INVALID_VIDEO', `the file has more than ${MAX_STREAMS} streams: keep fewer`, {
        cause: error,
      });
    throw signal.aborted
      ? error
      : blameInput(
          error,
          'INVALID_VIDEO',
          `the ${container.name} file is corrupt or not supported: check that it plays, or convert it first`,
        );
  }
}

/** A title is a stranger's, and so is how many there are. */
export function readAnswer(stdout: string): FfprobeAnswer {
  try {
    return FfprobeAnswer.parse(parseJson(stdout));
  } catch (error) {
    if (!(error instanceof OddJson)) throw error;
    const details = 'the file has more tags and chapters than can be read: leave some out';
    throw new MediaFailure('INVALID_VIDEO', details, { cause: error });
  }
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
