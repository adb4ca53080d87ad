/**
 * Media that tests read, made once on this machine: a later test or run that asks for the same
 * recipe gets the same files. All tests share them: copy one before you change it.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const CACHE = join(import.meta.dirname, '../../../.cache/test-media');

/** Whether these arguments of a tool name a file of the cache, which never changes. */
export const namesCached = (args: readonly string[]): boolean => args.some((arg) => arg.includes(CACHE));

/**
 * The path of a file that the system's ffmpeg makes with these arguments. The output's path is
 * added as the last one. Arguments may name other cached files.
 * @param name what the file is called, with the ending that tells ffmpeg its format
 */
export async function cachedMedia(name: string, args: readonly string[]): Promise<string> {
  const folder = await cachedFolder([name, args], async (path) => {
    await promisify(execFile)('ffmpeg', [
      '-nostdin',
      '-hide_banner',
      '-y',
      '-v',
      'error',
      ...args,
      join(path, name),
    ]);
  });
  return join(folder, name);
}

/**
 * The path of a folder that is filled once.
 * @param recipe all that decides what is in it
 */
export async function cachedFolder(
  recipe: unknown,
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(recipe)).digest('hex').slice(0, 16);
  const folder = join(CACHE, hash);
  if (await exists(folder)) return folder;
  const making = join(CACHE, `${hash}-${process.pid}-${performance.now()}`);
  await mkdir(making, { recursive: true });
  try {
    await fill(making);
    // Fails where another process was first; its files are as good.
    await rename(making, folder).catch(() => undefined);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return folder;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
