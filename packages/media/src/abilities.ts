/** What ffmpeg can do, by its own lists; which sandbox works here; where the tools are. */

import { release } from 'node:os';
import { delimiter, dirname } from 'node:path';
import { dieWithParent, findProgram } from 'soundpost-base/launcher';
import { type FoundTools, type MediaTools, type RunLimits, runFfmpeg, runFfprobe } from './run.ts';
import type { Sandbox, SandboxLevel } from './sandbox.ts';
import { findStarter } from './starter.ts';

const STDOUT_BYTES = 1024 * 1024;

/** From the first line of `-version`, such as `5.1.9-0+deb12u1`; undefined without such a line. */
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
  /** Without these no job, or none of a format, can run: `encoder libopus`. */
  readonly needed: readonly string[];
  /** Without these some sources are unreadable: `demuxer avi`, `every decoder of telephone`. */
  readonly wanted: readonly string[];
}

/** What the service uses and this ffmpeg lacks. */
export async function lacksOf(tools: MediaTools, limits: RunLimits): Promise<Lacks> {
  const list = (option: string): Promise<string> => said(tools, [option], limits);
  const [encoders, decoders, formats, filters, protocols] = await Promise.all([
    list('-encoders'),
    list('-decoders'),
    list('-formats'),
    list('-filters'),
    list('-protocols'),
  ]);
  const { requirements } = await import('./requirements.ts');
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
/** ` DE mp3`, from ffmpeg 7 on with a third flag, for devices; it may list names, `mov,mp4,m4a`. */
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

// Which sandbox works on this machine: tried by running both tools in it, since an installed one
// may still be forbidden.

/** Since then Landlock also stops signals (Documentation/userspace-api/landlock.rst, "Scope"). */
const SCOPED_SINCE = [6, 12] as const;

/** The first that works is used. Without user namespaces a run is 1 process, not 3: 5 ms less. */
function candidates(hasStarter: boolean): readonly Sandbox[] {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const isScoped = major > SCOPED_SINCE[0] || (major === SCOPED_SINCE[0] && minor >= SCOPED_SINCE[1]);
  const levels: readonly SandboxLevel[] = isScoped ? ['landlock', 'bubblewrap'] : ['bubblewrap', 'landlock'];
  return levels
    .filter((level) => hasStarter || level !== 'landlock')
    .flatMap((level) => [false, true].map((showsSystem) => ({ level, hasLimits: true, showsSystem })));
}

const WALL_MS = 10_000;

/** Level `none` when nothing works, not even the tools. @param wallLimitMs of each attempt */
export async function detectSandbox(
  tools: Omit<MediaTools, 'sandbox'>,
  wallLimitMs = WALL_MS,
): Promise<Sandbox> {
  for (const sandbox of candidates(tools.starterPath !== undefined)) {
    if (await works({ ...tools, sandbox }, wallLimitMs)) return sandbox;
  }
  return limitsAlone(tools, wallLimitMs);
}

/** Level `none`, with limits where something sets them. */
export async function limitsAlone(
  tools: Omit<MediaTools, 'sandbox'>,
  wallLimitMs = WALL_MS,
): Promise<Sandbox> {
  const sandbox = { level: 'none', hasLimits: true, showsSystem: true } as const;
  return (await works({ ...tools, sandbox }, wallLimitMs)) ? sandbox : { ...sandbox, hasLimits: false };
}

function works(tools: MediaTools, wallLimitMs: number): Promise<boolean> {
  return versionsOf(tools, { signal: new AbortController().signal, wallLimitMs }).then(
    () => true,
    () => false,
  );
}

// Where ffmpeg, ffprobe and the starter are on this machine.

/**
 * The ffmpeg and ffprobe to use: the requested ones, those in `builtFolder`, or the first on PATH.
 * @param wantedPath a path, or a name on the PATH
 * @param builtFolder where our own build is; default: nowhere
 */
export function findTools(
  wantedPath: string | undefined,
  searchPath: string,
  builtFolder?: string,
): FoundTools {
  const isBuiltMeant = wantedPath === undefined && builtFolder !== undefined;
  const built = isBuiltMeant ? findProgram('ffmpeg', builtFolder) : undefined;
  const ffmpegPath = built ?? findProgram(wantedPath ?? 'ffmpeg', searchPath);
  const beside = ffmpegPath === undefined ? [] : [dirname(ffmpegPath)];
  const ffprobePath = findProgram('ffprobe', [...beside, searchPath].join(delimiter));
  if (ffmpegPath !== undefined && ffprobePath !== undefined) {
    const launcher = dieWithParent('KILL', searchPath);
    return {
      tools: { ffmpegPath, ffprobePath, launcher, starterPath: findStarter(searchPath, builtFolder) },
      isOurs: built !== undefined,
    };
  }
  if (wantedPath?.includes('/')) {
    return {
      tools: undefined,
      missing: `there is no ffmpeg with an ffprobe at ${wantedPath}`,
    };
  }
  const names = [
    ...(ffmpegPath === undefined ? ['ffmpeg'] : []),
    ...(ffprobePath === undefined ? ['ffprobe'] : []),
  ];
  const missing = `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} not on the PATH`;
  return { tools: undefined, missing };
}
