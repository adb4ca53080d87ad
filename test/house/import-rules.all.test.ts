/** The rule of imports beside the doors, by planted breaches; and the doors themselves, which Node and tsc hold. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import extractDepcruiseConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

const something = 'export const something = 1;\n';
const importing = (...paths: string[]): string =>
  paths.map((path, index) => `import * as m${index} from '${path}';\nvoid m${index};\n`).join('') + something;
const manifest = (name: string, door: string, dependencies: Record<string, string>): string =>
  JSON.stringify({
    name: `soundpost-${name}`,
    type: 'module',
    exports: { [`./${door}`]: `./src/${door}.ts` },
    dependencies,
  });

/** In place of the tree's own, which imports something. */
const quiet = { 'packages/testing/src/needs.ts': something };

/** A house of a few packages, in which everything that may be done is done. */
const lawful = {
  ...quiet,
  'packages/inner/package.json': manifest('inner', 'door', { zod: '4' }),
  'packages/inner/src/door.ts': importing('./hidden.ts', 'zod', 'node:crypto'),
  'packages/inner/src/hidden.ts': something,
  'packages/media/package.json': manifest('media', 'starter', { 'soundpost-inner': '0' }),
  'packages/media/src/starter.ts': importing('node:child_process', 'soundpost-inner/door'),
  'packages/outbound/package.json': manifest('outbound', 'out', { undici: '8' }),
  'packages/outbound/src/out.ts': importing('undici', 'node:net'),
  'src/main.ts': importing('./jobs/queue.ts', 'zod'),
  'src/jobs/queue.ts': importing('bullmq'),
};

/** Breaches: the rule, the file that breaks it, and how. */
const breaches: readonly (readonly [rule: string, file: string, text: string])[] = [
  ['fence', 'packages/inner/src/a.ts', importing('../../../src/jobs/queue.ts')],
  ['fence', 'packages/media/src/a.ts', importing('../../inner/src/hidden.ts')],
  ['fence', 'src/p.ts', importing('../packages/inner/src/hidden.ts')],
  ['undeclared', 'packages/inner/src/c.ts', importing('express')],
  ['undeclared', 'packages/inner/src/d.ts', "export const load = () => import('soundpost-media/starter');\n"],
  ['undeclared', 'src/worker/j.ts', importing('left-pad')],
  ['no-unresolvable', 'packages/media/src/b.ts', importing('soundpost-inner/hidden')],
  ['no-unresolvable', 'src/m.ts', importing('./nowhere.ts')],
  ['no-circular', 'src/k.ts', importing('./l.ts')],
  ['child_process-owner', 'src/c.ts', importing('child_process')],
  ['child_process-owner', 'src/d.ts', "export const c = process.getBuiltinModule('node:child_process');\n"],
  ['bullmq-owner', 'src/gateway/d.ts', importing('bullmq')],
  ['undici-owner', 'src/worker/e.ts', importing('undici')],
  ['net-owner', 'src/worker/n.ts', importing('node:net')],
  [
    'net-owner',
    'src/worker/u.ts',
    "export async function f() {\n  await using x = (await import('node:net')).createServer();\n}\n",
  ],
];

describe('the rule of imports', () => {
  it('lets pass what it allows', async () => {
    await using tree = await plantTree(lawful);
    const { code, output } = await run(tree.folder, process.execPath, ['script/import-rules.ts']);
    const files = Object.keys(lawful).filter((path) => path.endsWith('.ts')).length;
    expect(output).toMatch(new RegExp(`^${files} modules, \\d+ imports, 0 breaches\n$`));
    expect(code).toBe(0);
  });

  describe('with breaches planted', () => {
    let outcome: Outcome;
    beforeAll(async () => {
      await using tree = await plantTree({
        ...lawful,
        ...Object.fromEntries(breaches.map(([, file, text]) => [file, text])),
        'src/l.ts': importing('./k.ts'),
      });
      outcome = await run(tree.folder, process.execPath, ['script/import-rules.ts']);
    });

    it('fails', () => {
      expect(outcome.code).toBe(1);
    });

    it.each(breaches)('reports %s in %s', (rule, file) => {
      expect(outcome.output).toContain(`${rule}: ${file} → `);
    });

    it('blames no file that breaks nothing', () => {
      const planted = new Set([...breaches.map(([, file]) => file), 'src/l.ts']);
      const blamed = [...outcome.output.matchAll(/^[^:\n]+: (\S+) → /gm)].map(([, file]) => file);
      expect(blamed.filter((file) => file !== undefined && !planted.has(file))).toEqual([]);
    });
  });

  it('has a breach of each kind above', async () => {
    const { forbidden = [] } = await extractDepcruiseConfig(`${projectFolder}/.dependency-cruiser.mjs`);
    const planted = new Set(breaches.map(([rule]) => rule));
    expect(forbidden.map(({ name }) => name).filter((name) => !planted.has(name ?? ''))).toEqual([]);
  });

  it('fails where it reads nothing', async () => {
    await using tree = await plantTree({ ...quiet, 'src/main.ts': something });
    expect((await run(tree.folder, process.execPath, ['script/import-rules.ts'])).code).toBe(1);
  });

  it('is kept', async () => {
    const { code, output } = await run(projectFolder, process.execPath, ['script/import-rules.ts']);
    const [, modules, imports] = /(\d+) modules, (\d+) imports/.exec(output) ?? [];
    expect(code, output).toBe(0);
    // A file without any import is rare; a checker that sees few imports is blind.
    expect(Number(imports)).toBeGreaterThan(2 * Number(modules));
  });
});

describe('the doors', async () => {
  /** n8n-nodes-soundpost is no workspace: n8n loads it by its manifest, and nothing imports it. */
  const without = ['testing', 'n8n-nodes-soundpost'];
  const names = (await readdir(join(projectFolder, 'packages'))).filter((name) => !without.includes(name));

  it.each(names)('of %s are open by name, and nothing else is reached', async (name) => {
    const folder = join(projectFolder, 'packages', name);
    const { exports } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const open = Object.keys(exports).map((door) => door.replace(/^\./, `soundpost-${name}`));
    expect(open.map((door) => import.meta.resolve(door))).toHaveLength(open.length);
    for (const path of [
      `soundpost-${name}/src/${Object.keys(exports)[0]}.ts`,
      `soundpost-${name}/no-such-door`,
    ]) {
      expect(() => import.meta.resolve(path)).toThrow(
        /ERR_PACKAGE_PATH_NOT_EXPORTED|not defined by "exports"/,
      );
    }
  });

  it('are what tsc sees', async () => {
    await using tree = await plantTree({
      ...lawful,
      'src/through-the-door.ts': importing('soundpost-inner/door'),
      'src/over-the-fence.ts': importing('soundpost-inner/hidden'),
      'src/by-its-file.ts': importing('soundpost-inner/src/hidden.ts'),
    });
    const tsc = join(projectFolder, 'node_modules/.bin/tsc');
    const { code, output } = await run(tree.folder, tsc, ['-p', '.', '--pretty', 'false']);
    const refused = [...output.matchAll(/^(src\/\S+)\(.*TS2307: Cannot find module/gm)].map(
      ([, file]) => file,
    );
    expect(refused.sort(), output).toEqual(['src/by-its-file.ts', 'src/over-the-fence.ts']);
    expect(code).not.toBe(0);
  });
});
