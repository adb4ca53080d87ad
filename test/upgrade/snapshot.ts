/**
 * All that a service has kept, in Redis and on disk, taken at one moment and put back at another.
 *
 * A file of Redis' own would not do: it holds the time at which each key expires, so months later nothing would be loaded. Here each key has
 * the time that it had left, and every moment that stands in a name, value, score or file is moved by the same amount (`shiftTimes`), so that
 * the service finds its data as old as it was.
 */
import { isUtf8 } from 'node:buffer';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Redis } from 'ioredis';
import { readValue, type StoredValue, writeValue } from './redis-values.ts';
import { shiftTimes } from './shift-times.ts';

type StoredKey = StoredValue & { readonly ttlMs?: number };

export interface Snapshot {
  /** ms since 1970. */
  readonly takenAtMs: number;
  /** By key. */
  readonly redis: Readonly<Record<string, StoredKey>>;
  /** Base64 by path. */
  readonly files: Readonly<Record<string, string>>;
}

/** Stands in paths for the name of the machine, which belongs to the names of folders that processes have for themselves. */
const HOSTNAME_MARK = '{hostname}';

/** @param folders by the name under which their files stand in the snapshot */
export async function takeSnapshot(
  redis: Redis,
  folders: Readonly<Record<string, string>>,
): Promise<Snapshot> {
  const takenAtMs = Date.now();
  const keys: Record<string, StoredKey> = {};
  for (const key of (await redis.keys('*')).sort()) {
    const ttlMs = await redis.pttl(key);
    const value = await readValue(redis, key);
    if (value !== undefined) keys[key] = ttlMs < 0 ? value : { ...value, ttlMs };
  }
  const files: Record<string, string> = {};
  for (const [name, folder] of Object.entries(folders)) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((found) => found.isFile())) {
      const path = join(entry.parentPath, entry.name);
      const relative = path.slice(folder.length).replaceAll(hostname(), HOSTNAME_MARK);
      files[`${name}${relative}`] = (await readFile(path)).toString('base64');
    }
  }
  return { takenAtMs, redis: keys, files };
}

interface Moving {
  /** By how much every moment moves. */
  readonly byMs: number;
  /** How long nobody was there, as the service will see it: the time that keys have left is so much shorter. */
  readonly elapsedMs: number;
}

export async function restoreRedis(
  { takenAtMs, redis: keys }: Snapshot,
  redis: Redis,
  { byMs, elapsedMs }: Moving,
): Promise<void> {
  const move = (text: string): string => shiftTimes(text, takenAtMs, byMs);
  for (const [key, stored] of Object.entries(keys)) {
    const ttlMs = stored.ttlMs === undefined ? undefined : stored.ttlMs - elapsedMs;
    if (ttlMs !== undefined && ttlMs <= 0) continue;
    await writeValue(redis, move(key), stored, move, byMs);
    if (ttlMs !== undefined) await redis.pexpire(move(key), ttlMs);
  }
}

/** @param name of the folder in the snapshot; moments in files that are no text stay what they are */
export async function restoreFolder(
  { takenAtMs, files }: Snapshot,
  name: string,
  folder: string,
  { byMs }: Pick<Moving, 'byMs'>,
): Promise<void> {
  for (const [file, content] of Object.entries(files)) {
    if (!file.startsWith(`${name}/`)) continue;
    const path = join(folder, file.slice(name.length).replaceAll(HOSTNAME_MARK, hostname()));
    const bytes = Buffer.from(content, 'base64');
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, isUtf8(bytes) ? shiftTimes(bytes.toString('utf8'), takenAtMs, byMs) : bytes);
  }
}

export async function readSnapshot(path: string): Promise<Snapshot> {
  return JSON.parse((await promisify(gunzip)(await readFile(path))).toString('utf8'));
}

export async function writeSnapshot(path: string, snapshot: Snapshot): Promise<void> {
  await writeFile(path, await promisify(gzip)(JSON.stringify(snapshot), { level: 9 }));
}
