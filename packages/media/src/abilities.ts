/** What ffmpeg says that it is and can, by its own lists. */
import { requirements } from './requirements.ts';
import { type MediaTools, type RunLimits, runFfmpeg, runFfprobe } from './run.ts';

const STDOUT_BYTES = 1024 * 1024;

/** As the first line of `-version` has it, such as `5.1.9-0+deb12u1`; undefined when that is no such line. */
export async function versionsOf(
  tools: MediaTools,
  limits: RunLimits,
): Promise<{ ffmpeg: string | undefined; ffprobe: string | undefined }> {
  const [ffmpeg, ffprobe] = await Promise.all([
    said(tools, ['-version'], limits),
    runFfprobe(tools, ['-version'], { ...limits, maxStdoutBytes: STDOUT_BYTES }),
  ]);
  return { ffmpeg: versionIn(ffmpeg), ffprobe: versionIn(ffprobe.stdout) };
}

function versionIn(text: string): string | undefined {
  return /^(?:ffmpeg|ffprobe) version (\S+)/m.exec(text)?.[1];
}

interface Lacks {
  /** Without which no job, or none of a format, can be done: `encoder libopus`. */
  readonly needed: readonly string[];
  /** Without which some sources cannot be read: `demuxer matroska`, `every decoder of telephone`. */
  readonly wanted: readonly string[];
}

/** What the service uses and this ffmpeg has not. */
export async function lacksOf(tools: MediaTools, limits: RunLimits): Promise<Lacks> {
  const list = (option: string): Promise<string> => said(tools, [option], limits);
  const [encoders, decoders, formats, filters, protocols] = await Promise.all([
    list('-encoders'),
    list('-decoders'),
    list('-formats'),
    list('-filters'),
    list('-protocols'),
  ]);
  const needs = requirements();
  const missing = (kind: string, names: readonly string[], has: ReadonlySet<string>): string[] =>
    names.filter((name) => !has.has(name)).map((name) => `${kind} ${name}`);
  const hasDecoders = namesIn(decoders, CODEC);
  return {
    needed: [
      ...missing('encoder', needs.encoders, namesIn(encoders, CODEC)),
      ...missing('muxer', needs.muxers, namesIn(formats, MUXER)),
      ...missing('filter', needs.filters, namesIn(filters, FILTER)),
      ...missing('protocol', needs.protocols, namesIn(protocols, PROTOCOL)),
    ],
    wanted: [
      ...missing('demuxer', needs.demuxers, namesIn(formats, DEMUXER)),
      ...Object.entries(needs.decoders)
        .filter(([, names]) => !names.some((name) => hasDecoders.has(name)))
        .map(([family]) => `every decoder of ${family}`),
    ],
  };
}

/** The flags of a codec, as in ` A....D libopus   libopus Opus (codec opus)`. */
const CODEC = /^ [A-Z.]{6} ([^=\s]+)/;
/** ` DE mp3`, and from ffmpeg 7 on with a third flag, for devices; a name may be several, `mov,mp4,m4a`. */
const DEMUXER = /^ D[E ][d ]? {1,2}(\S+)/;
const MUXER = /^ [D ]E[d ]? {1,2}(\S+)/;
/** ` ..C volume   A->A   …`, from ffmpeg 8 on with two flags. */
const FILTER = /^ [A-Z.|]{2,3} (\S+) +\S+->/;
const PROTOCOL = /^ {2}(\S+)$/;

function namesIn(list: string, row: RegExp): ReadonlySet<string> {
  return new Set(list.split('\n').flatMap((line) => row.exec(line)?.[1]?.split(',') ?? []));
}

async function said(tools: MediaTools, args: readonly string[], limits: RunLimits): Promise<string> {
  const chunks: Buffer[] = [];
  await runFfmpeg(tools, args, { ...limits, onStdout: (chunk) => chunks.push(chunk) });
  return Buffer.concat(chunks).toString('utf8');
}
