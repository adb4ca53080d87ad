/** ffmpeg and outbound requests, set up from the configuration. */

import { extname } from 'node:path';
import { findProgram } from 'soundpost-base/launcher';
import type { Logger } from 'soundpost-base/logger';
import { detectSandbox, findTools, limitsAlone } from 'soundpost-media/abilities';
import { packagedTools, TOOLS_PACKAGE } from 'soundpost-media/packaged-tools';
import type { FoundTools, MediaTools } from 'soundpost-media/run';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { builtFolder, type Config, ConfigurationError, searchPath, version } from './config.ts';

interface OwnTools {
  readonly folder: string;
  /** Why the npm package is not used, as a sentence. */
  readonly fault?: string;
}

let own: Promise<OwnTools> | undefined;

/** Where our own build is: script/ffmpeg's in a checkout, else the npm package's. */
export function ownTools(): Promise<OwnTools> {
  own ??=
    findProgram('ffmpeg', builtFolder) === undefined
      ? packagedTools(version, searchPath).then((packaged) => ({ folder: builtFolder, ...packaged }))
      : Promise.resolve({ folder: builtFolder });
  return own;
}

/** What brings our own build to this machine; undefined where it cannot be brought. */
export const bringsOwn = bringing(extname(import.meta.filename) === '.ts');

function bringing(isCheckout: boolean): string | undefined {
  if (TOOLS_PACKAGE === undefined) return undefined;
  return isCheckout ? 'script/ffmpeg' : `npm install ${TOOLS_PACKAGE}@${version}`;
}

export type ConfiguredTools = FoundTools & {
  /** What brings our own build, where another one was found without being asked for. */
  readonly better?: string | undefined;
  /** Why the npm package with our own build is not used, as a sentence. */
  readonly fault?: string | undefined;
};

/** ffmpeg from FFMPEG_PATH, our own build or the PATH; the error names the setting. */
export async function configuredTools({
  FFMPEG_PATH,
}: Pick<Config, 'FFMPEG_PATH'>): Promise<ConfiguredTools> {
  const { folder, fault } = await ownTools();
  const found = findTools(FFMPEG_PATH, searchPath, folder);
  if (FFMPEG_PATH === undefined) {
    return { ...found, fault, ...(found.tools !== undefined && found.isOurs ? {} : { better: bringsOwn }) };
  }
  return found.tools === undefined ? { ...found, missing: `FFMPEG_PATH: ${found.missing}` } : found;
}

/** Why another build is better. */
export const OWN_IS_FASTER = "Soundpost's own build does short jobs faster (docs/performance.md)";

/** Which ffmpeg is used, and what brings a faster one: one line. */
export function describeTools(found: ConfiguredTools): string {
  if (found.tools === undefined) return found.missing;
  const notes = [
    found.isOurs ? `${found.tools.ffmpegPath}, Soundpost's own build` : found.tools.ffmpegPath,
    found.fault,
    found.better === undefined ? undefined : `${OWN_IS_FASTER}: ${found.better}`,
  ];
  return notes.filter((note) => note !== undefined).join('. ');
}

/** @throws ConfigurationError without ffmpeg, or if this machine lacks what SANDBOX demands */
export async function confinedTools(config: Config, logger: Logger): Promise<MediaTools> {
  const { SANDBOX } = config;
  const found = await configuredTools(config);
  if (found.tools === undefined) {
    throw new ConfigurationError(
      `${found.missing}${found.fault === undefined ? '' : ` (${found.fault})`}: install ffmpeg (apt-get install ffmpeg); \`soundpost doctor\` checks the rest`,
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
