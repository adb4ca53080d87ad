/**
 * The root package is published with the parts in it: npm has to bring what the packages in it need, in the versions that they name. A package with a
 * program of its own is not in it.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectFolder } from './planted-tree.ts';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly bin?: unknown;
}

it('the root package depends on what its packages depend on', () => {
  const manifests = globSync('packages/*/package.json', { cwd: projectFolder });
  const read = (path: string): Manifest => JSON.parse(readFileSync(join(projectFolder, path), 'utf8'));
  const { dependencies: own = {} } = read('package.json');
  const needed = manifests
    .map(read)
    .filter(({ bin }) => bin === undefined)
    .flatMap(({ dependencies }) => Object.entries(dependencies ?? {}))
    .filter(([name]) => !name.startsWith('soundpost-'));
  expect(needed.length).toBeGreaterThan(20);
  expect(needed.filter(([name, version]) => own[name] !== version)).toEqual([]);
});
