/** ffmpeg, and the way outside: what reads a stranger's file and what fetches it, as the configuration has them. */
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, ConfigurationError, searchPath } from '../config.ts';
import { dieWithParent, findProgram } from '../launcher.ts';
import { detectSandbox, limitsAlone } from '../media/detect-sandbox.ts';
import type { FoundTools, MediaTools } from '../media/run.ts';
import type { Logger } from '../observe/logger.ts';
import { parseAllowRules } from '../outbound/allow-rules.ts';
import { createOutbound, type Outbound } from '../outbound/outbound.ts';

/** Where script/ffmpeg puts what it builds for this checkout. */
const BUILT = fileURLToPath(new URL('../../.ffmpeg/bin/', import.meta.url));

/** The ffmpeg and ffprobe that everything uses: those of FFMPEG_PATH, of script/ffmpeg, or the first on the PATH. */
export function findTools({ FFMPEG_PATH }: Pick<Config, 'FFMPEG_PATH'>): FoundTools {
  const built = FFMPEG_PATH === undefined ? findProgram('ffmpeg', BUILT) : undefined;
  const ffmpegPath = built ?? findProgram(FFMPEG_PATH ?? 'ffmpeg', searchPath);
  const beside = ffmpegPath === undefined ? [] : [dirname(ffmpegPath)];
  const ffprobePath = findProgram('ffprobe', [...beside, searchPath].join(delimiter));
  if (ffmpegPath !== undefined && ffprobePath !== undefined) {
    const launcher = dieWithParent('KILL', searchPath);
    return {
      tools: { ffmpegPath, ffprobePath, launcher, starterPath: findStarter() },
      isBuiltHere: built !== undefined,
    };
  }
  if (FFMPEG_PATH?.includes('/')) {
    return {
      tools: undefined,
      missing: `there is no ffmpeg with an ffprobe at FFMPEG_PATH (${FFMPEG_PATH})`,
    };
  }
  const names = [
    ...(ffmpegPath === undefined ? ['ffmpeg'] : []),
    ...(ffprobePath === undefined ? ['ffprobe'] : []),
  ];
  const missing = `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} not on the PATH`;
  return { tools: undefined, missing };
}

/** The program that starts the tools (decision 35), where it is built. */
export function findStarter(): string | undefined {
  return findProgram('soundpost-start', [BUILT, searchPath].join(delimiter));
}

/** Throws a ConfigurationError where there is no ffmpeg, or SANDBOX asks for more than this machine has. */
export async function confinedTools(config: Config, logger: Logger): Promise<MediaTools> {
  const { SANDBOX } = config;
  const found = findTools(config);
  if (found.tools === undefined) {
    throw new ConfigurationError(
      `${found.missing}: install ffmpeg (apt-get install ffmpeg); \`soundpost doctor\` checks the rest`,
    );
  }
  const { tools } = found;
  if (SANDBOX === 'off') {
    logger.warn('ffmpeg is not confined, as SANDBOX=off says');
    return { ...tools, sandbox: await limitsAlone(tools) };
  }
  const sandbox = await detectSandbox(tools);
  if (sandbox.level === 'none') {
    const remedy =
      process.platform === 'linux'
        ? 'ffmpeg cannot be confined here: install bubblewrap (apt-get install bubblewrap); docs/operations.md "Sandbox" says what works where user namespaces are forbidden'
        : 'ffmpeg can be confined on Linux only';
    if (SANDBOX === 'required') {
      throw new ConfigurationError(`${remedy}; SANDBOX=off goes on without, for files that you trust`);
    }
    logger.warn({ sandbox }, remedy);
  } else {
    logger.info({ sandbox }, 'ffmpeg is confined');
  }
  return { ...tools, sandbox };
}

/** Requests to addresses that callers chose. */
export function guardedOutbound(config: Config, logger: Logger): Outbound {
  const patienceMs = config.SOURCE_PATIENCE_SECONDS * 1000;
  return createOutbound({
    allow: parseAllowRules(config.OUTBOUND_ALLOW),
    ports: config.OUTBOUND_PORTS,
    proxy: config.OUTBOUND_PROXY,
    logger,
    userAgent: 'Soundpost',
    downloadLimits: {
      headersTimeoutMs: patienceMs,
      idleTimeoutMs: patienceMs,
      rateWindowMs: patienceMs,
      minBytesPerSecond: config.SOURCE_MIN_BYTES_PER_SECOND,
    },
  });
}
