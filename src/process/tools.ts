/** ffmpeg and outbound requests, set up from the configuration. */

import type { Logger } from 'soundpost-base/logger';
import { detectSandbox, findTools, limitsAlone } from 'soundpost-media/abilities';
import type { FoundTools, MediaTools } from 'soundpost-media/run';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { builtFolder, type Config, ConfigurationError, searchPath } from './config.ts';

/** ffmpeg from FFMPEG_PATH, script/ffmpeg or the PATH; the error names the setting. */
export function configuredTools({ FFMPEG_PATH }: Pick<Config, 'FFMPEG_PATH'>): FoundTools {
  const found = findTools(FFMPEG_PATH, searchPath, builtFolder);
  if (found.tools !== undefined || FFMPEG_PATH === undefined) return found;
  return { ...found, missing: `FFMPEG_PATH: ${found.missing}` };
}

/** @throws ConfigurationError without ffmpeg, or if this machine lacks what SANDBOX demands */
export async function confinedTools(config: Config, logger: Logger): Promise<MediaTools> {
  const { SANDBOX } = config;
  const found = configuredTools(config);
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
        ? 'ffmpeg cannot be confined here: install bubblewrap (apt-get install bubblewrap); docs/operations/security.md "Sandbox" says what works where user namespaces are forbidden'
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
