/** `engines` in package.json says which Node is needed. What cannot read it there agrees. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');

const needed = /^>=(\d+)$/.exec(JSON.parse(read('package.json')).engines.node)?.[1];

it.each([
  ['script/bootstrap', /^node_version=(\d+)\./gm],
  ['Dockerfile', /^FROM node:(\d+)-/gm],
  ['script/test-containers', /\bnode:(\d+)-/g],
  ['package.json', /"@types\/node": "(\d+)\./g],
  ['CHANGELOG.md', /It needs Node (\d+) or newer/g],
  ['docs/operations/deploying.md', /\bNode (\d+) or newer/g],
  ['docs/operations/deploying.md', /`node:(\d+)-/g],
  ['docs/decisions/0001-node-runs-typescript.md', /\bNode (\d+) or newer/g],
])('%s says the version that `engines` says: %s', (path, pattern) => {
  const said = [...read(path).matchAll(pattern)].map(([, version]) => version);
  expect(said.length).toBeGreaterThan(0);
  expect(new Set(said)).toEqual(new Set([needed]));
});

it('the client, which runs on older ones too, says so where it is read of', () => {
  const least = JSON.parse(read('packages/client/package.json')).engines.node.replace('>=', '');
  for (const path of ['packages/client/README.md', 'CHANGELOG.md'])
    expect(read(path)).toContain(`Node ${least} or newer`);
});
