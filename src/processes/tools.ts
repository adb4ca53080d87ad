/** ffmpeg, and the way outside: what reads a stranger's file and what fetches it, as the configuration has them. */
import { type Config, ConfigurationError, searchPath } from '../config.ts';
import { dieWithParent, findProgram } from '../launcher.ts';
import type { Logger } from '../logger.ts';
import { detectSandbox } from '../media/detect-sandbox.ts';
import type { MediaTools } from '../media/run.ts';
import { parseAllowRules } from '../outbound/allow-rules.ts';
import { createOutbound, type Outbound } from '../outbound/outbound.ts';

/** The first ffmpeg and ffprobe on the PATH; undefined where one of them is missing. */
export function findTools(): Omit<MediaTools, 'sandbox'> | undefined {
  const [ffmpegPath, ffprobePath] = [findProgram('ffmpeg', searchPath), findProgram('ffprobe', searchPath)];
  return ffmpegPath === undefined || ffprobePath === undefined
    ? undefined
    : { ffmpegPath, ffprobePath, launcher: dieWithParent('KILL', searchPath) };
}

/** Throws a ConfigurationError where there is no ffmpeg, or SANDBOX asks for more than this machine has. */
export async function confinedTools({ SANDBOX }: Config, logger: Logger): Promise<MediaTools> {
  const tools = findTools();
  if (tools === undefined) {
    throw new ConfigurationError(
      'ffmpeg and ffprobe are not on the PATH: install ffmpeg (apt-get install ffmpeg); `soundpost doctor` checks the rest',
    );
  }
  const sandbox = await detectSandbox(tools);
  if (sandbox.level === 'none') {
    const remedy =
      'ffmpeg cannot be confined here: install bubblewrap (apt-get install bubblewrap) beside ffmpeg; in a container, allow user namespaces too (docs/operations.md "Sandbox")';
    if (SANDBOX === 'required') throw new ConfigurationError(`SANDBOX=required, but ${remedy}`);
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
