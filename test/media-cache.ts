/** Media that tests read, made once on this machine: a later test or run that asks for the same recipe gets the same file. */
import { createHash } from 'node:crypto';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ffmpeg } from './media/oracle.ts';

const CACHE = join(import.meta.dirname, '../.cache/test-media');

/**
 * The path of a file that the system's ffmpeg makes with these arguments; the output's path is added as the last one. The file is shared by all tests:
 * whoever wants to change it copies it first.
 * @param name what the file is called, with the ending that tells ffmpeg its format
 */
export async function cachedMedia(name: string, args: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
    .update(JSON.stringify([name, args]))
    .digest('hex')
    .slice(0, 16);
  const folder = join(CACHE, hash);
  const file = join(folder, name);
  if (await exists(file)) return file;
  const making = join(CACHE, `${hash}-${process.pid}-${performance.now()}`);
  await mkdir(making, { recursive: true });
  try {
    await ffmpeg('-v', 'error', ...args, join(making, name));
    // Fails where another process was first; its file is as good.
    await rename(making, folder).catch(() => undefined);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return file;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
