/** Packages of a newer Debian than this machine's, in a file system of their own. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Made by the first call on a machine, which takes minutes. `missing`: why it cannot be. */
export function debianPackages(
  name: string,
  packages: readonly string[],
): { readonly root: string } | { readonly missing: string } {
  const command = join(import.meta.dirname, 'debian-packages');
  const { status, stdout, stderr } = spawnSync(command, [name, ...packages], { encoding: 'utf8' });
  return status === 0 ? { root: stdout.trim() } : { missing: stderr.trim() };
}

/**
 * What a command begins with that runs a program of that file system, with its libraries, outside
 * of it.
 */
export function programOf(root: string, program: string): readonly string[] {
  const libraries = ['--library-path', join(root, 'usr/lib/x86_64-linux-gnu')];
  return [join(root, 'usr/lib64/ld-linux-x86-64.so.2'), ...libraries, join(root, program)];
}
