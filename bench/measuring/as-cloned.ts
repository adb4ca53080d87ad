/** The service where nothing is compiled: its sources beside no ffmpeg and no starter of our own, as after `git clone`. */
import { cp, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** @returns the program, in a folder within this checkout, whose packages it uses */
export async function asCloned(): Promise<string> {
  const folder = join(ROOT, '.cache/as-cloned');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await cp(join(ROOT, 'src'), join(folder, 'src'), { recursive: true });
  for (const name of ['package.json', 'web']) await symlink(join(ROOT, name), join(folder, name));
  return join(folder, 'src/main.ts');
}
