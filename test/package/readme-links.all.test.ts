/** What npm would pack of each package that is published: every README in it leads to files that are in it. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { projectFolder } from '../docs/markdown.ts';

const execute = promisify(execFile);
const Packed = z.tuple([z.object({ files: z.array(z.object({ path: z.string() })) })]);

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-readme-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** The folder that is published as this package, without what is built. */
async function folderOf(name: string): Promise<string> {
  if (name === 'n8n-nodes-soundpost') return join(projectFolder, 'packages', name);
  await execute(process.execPath, [join(projectFolder, 'script/published-package.ts'), name, folder]);
  return folder;
}

/** Each link of a README, and each picture, to something that is not in the package. */
async function brokenLinks(packageFolder: string): Promise<string[]> {
  const { stdout } = await execute('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: packageFolder,
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` },
  });
  const [{ files }] = Packed.parse(JSON.parse(stdout));
  const paths = files.map(({ path }) => path);
  const readmes = paths.filter((path) => /(^|\/)README\.md$/.test(path));
  expect(readmes).toContain('README.md');
  const found = await Promise.all(
    readmes.map(async (readme) => {
      const text = (await readFile(join(packageFolder, readme), 'utf8')).replaceAll(
        /^`{3}[\s\S]*?^`{3}/gm,
        '',
      );
      return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^([a-z]+:|#)/.test(target))
        .filter((target) => !paths.includes(normalize(join(dirname(readme), target.replace(/#.*/, '')))))
        .map((target) => `${readme}: ${target}`);
    }),
  );
  return found.flat();
}

it.each(['soundpost', 'client', 'mcp', 'media', 'n8n-nodes-soundpost'])(
  '%s',
  async (name) => {
    expect(await brokenLinks(await folderOf(name))).toEqual([]);
  },
  600_000,
);
