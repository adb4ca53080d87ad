/** The only file that reads `process.env`; also locates package.json, ffmpeg and the pages. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Environment } from 'soundpost-kit/settings/environment';
import { z } from 'zod';

/** Beside `src` or `dist`. Read, not imported: tsc would count package.json among the sources. */
const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));

export { version };

/** Where programs are searched. Not our setting; read here like everything in the environment. */
export const searchPath = process.env.PATH ?? '';

/** Where script/ffmpeg builds for this checkout. */
export const builtFolder = fileURLToPath(new URL('../../.ffmpeg/bin/', import.meta.url));

/** The kind of the terminal; `dumb` can move no cursor. */
export const terminalKind = process.env.TERM ?? '';

export type Config = z.infer<typeof Environment>;

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

interface ConfigFault {
  readonly variable: string;
  readonly rule: string;
}

/** Neither works without the other. */
const TOGETHER = [
  ['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'],
  ['REDIS_CERT_FILE', 'REDIS_KEY_FILE'],
] as const;

/**
 * Reads the environment. An empty value counts as unset.
 * @throws ConfigurationError listing every fault: variable, rule, and where to read more
 */
export function loadConfig(environment: Readonly<Record<string, string | undefined>> = process.env): Config {
  const { config, faults } = readConfig(environment);
  if (faults.length > 0) {
    const lines = faults.map(({ variable, rule }) => `${variable}: ${rule}`);
    throw new ConfigurationError(
      `the environment has ${faults.length} fault(s); docs/reference/configuration.md lists every variable\n  ${lines.join('\n  ')}`,
    );
  }
  return config;
}

/** Every fault, and the configuration with defaults in place of the variables at fault. */
export function readConfig(environment: Readonly<Record<string, string | undefined>> = process.env): {
  config: Config;
  faults: ConfigFault[];
} {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => name in Environment.shape && value !== ''),
  );
  const parsed = Environment.safeParse(given);
  const faults: ConfigFault[] = parsed.success
    ? []
    : parsed.error.issues.map((issue) => ({ variable: String(issue.path[0]), rule: issue.message }));
  const sound = Object.entries(given).filter(([name]) => !faults.some(({ variable }) => variable === name));
  const config = parsed.success ? parsed.data : Environment.parse(Object.fromEntries(sound));
  return { config, faults: [...faults, ...faultsBetween(given)] };
}

/** How many of our variables are set. */
export function configuredCount(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): number {
  return Object.keys(Environment.shape).filter((name) => (environment[name] ?? '') !== '').length;
}

function faultsBetween(given: Readonly<Record<string, string | undefined>>): ConfigFault[] {
  const faults: ConfigFault[] = [];
  if (given.REDIS_URL !== undefined && (given.SECRET_KEY ?? given.SECRET_KEY_FILE) === undefined) {
    faults.push({
      variable: 'SECRET_KEY',
      rule: 'must be set when REDIS_URL is, so that every process derives the same secrets; or SECRET_KEY_FILE, to a file that all of them share',
    });
  }
  for (const [one, other] of TOGETHER) {
    if ((given[one] === undefined) !== (given[other] === undefined)) {
      faults.push({ variable: one, rule: `must be set together with ${other}` });
    }
  }
  if (given.TRANSCRIBER_URL === undefined) {
    const idle = Object.keys(given).filter((name) => name.startsWith('TRANSCRIBER_'));
    faults.push(...idle.map((variable) => ({ variable, rule: 'means nothing without TRANSCRIBER_URL' })));
  }
  if (given.STORAGE_URL === undefined) {
    const idle = Object.keys(given).filter((name) => name.startsWith('S3_'));
    faults.push(
      ...idle.map((variable) => ({ variable, rule: 'means nothing without STORAGE_URL=s3://bucket' })),
    );
  }
  return faults;
}

const WEB = new URL('../../web/', import.meta.url);

/** Scripts of the /docs pages, by path; from script/scalar (1st) and script/build-web.ts (2nd). */
export const referenceFiles: ReadonlyMap<string, URL | string> = new Map([
  ['scalar.js', new URL('reference/scalar.js', WEB)],
  ['reference.js', new URL('dist/reference/reference.js', WEB)],
]);
