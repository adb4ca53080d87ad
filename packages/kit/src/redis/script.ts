/** A Lua script, sent once and then called by its hash. The header of its file documents it. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from './connection.ts';

export class RedisScript {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = source;
    this.#sha = createHash('sha1').update(source).digest('hex');
  }

  async run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...args);
    } catch (error) {
      // A restarted or flushed Redis has forgotten the script.
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) {
        return redis.eval(this.#source, keys.length, ...keys, ...args);
      }
      throw error;
    }
  }
}

/** @param file such as `new URL('./lua/reserve.lua', import.meta.url)` */
export function loadScript(file: URL): RedisScript {
  return new RedisScript(readScript(file));
}

const INCLUDE = /^-- include: (\S+)$/gm;
const THIS_PACKAGE = 'soundpost-kit/';

/** A script's text, with each included file once, at its first mention. */
export function readScript(file: URL, included = new Set<string>()): string {
  return readFileSync(file, 'utf8').replaceAll(INCLUDE, (_, name: string) => {
    const other = includedFile(file, name);
    if (included.has(other.href)) return '';
    included.add(other.href);
    return readScript(other, included);
  });
}

/** A file beside this one, or of this package by name: the published code has no such package. */
function includedFile(file: URL, name: string): URL {
  return name.startsWith(THIS_PACKAGE)
    ? new URL(`../${name.slice(THIS_PACKAGE.length)}`, import.meta.url)
    : new URL(name, file);
}
