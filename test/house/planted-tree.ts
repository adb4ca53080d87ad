import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

export const projectFolder = resolve(import.meta.dirname, '../..');

/** What the checks read besides the code that they judge. */
const settings = [
  '.dependency-cruiser.mjs',
  '.gitignore',
  'biome.json',
  'knip.json',
  'package-lock.json',
  'package.json',
  'redocly.yaml',
  // Without bootstrap: it would install into the node_modules that the tree borrows.
  'script/check',
  'script/env.sh',
  'script/import-rules.ts',
  'script/lock-file.ts',
  'script/owners.ts',
  'script/no-environment-alias.grit',
  'script/no-prototype-change.grit',
  'script/bullmq-internals.grit',
  'script/measure-file.ts',
  'script/tally-reporter.ts',
  'script/test',
  'script/no-browser-types.d.ts',
  'packages/testing/package.json',
  'packages/testing/src/needs.ts',
  'tsconfig.json',
  'web/tsconfig.json',
  'vitest.config.ts',
];

export interface PlantedTree extends AsyncDisposable {
  readonly folder: string;
}

/**
 * A project with this project's own settings and packages, but other code.
 * @param files text by path. A path given here replaces the project's own file.
 */
export async function plantTree(files: Readonly<Record<string, string>>): Promise<PlantedTree> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-house-'));
  for (const path of settings) {
    await cp(join(projectFolder, path), join(folder, path), { recursive: true });
  }
  await writeFile(join(folder, 'script/ffmpeg'), '#!/bin/sh\n', { mode: 0o755 });
  await mkdir(join(folder, 'node_modules'));
  // The packages of ours are the tree's own.
  const installed = await readdir(join(projectFolder, 'node_modules'));
  for (const name of installed.filter((one) => !/^(\.|soundpost-)/.test(one) || one === '.bin')) {
    await symlink(join(projectFolder, 'node_modules', name), join(folder, 'node_modules', name));
  }
  const packages = Object.keys(files).flatMap(
    (path) => /^packages\/([^/]+)\/package\.json$/.exec(path)?.[1] ?? [],
  );
  for (const name of ['testing', ...packages]) {
    await symlink(`../packages/${name}`, join(folder, 'node_modules', `soundpost-${name}`));
  }
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text, { mode: text.startsWith('#!') ? 0o755 : 0o644 });
  }
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}
