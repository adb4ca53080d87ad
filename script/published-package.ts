/**
 * Writes beside a library's `dist` what npm needs besides: README, LICENSE, and a package.json whose `exports` name what was built, where those of the checkout
 * name the sources. What of ours it uses is in the bundle, so it depends on the packages of others that those use.
 *
 *   node script/published-package.ts <name below packages/> <folder of the package>
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  /** Fields that take the place of the checkout's. */
  readonly publishConfig: { readonly access: string; readonly provenance: boolean };
  readonly [field: string]: unknown;
}

const [name = '', folder = ''] = process.argv.slice(2);
const packages = join(import.meta.dirname, '../packages');

function manifestOf(part: string): Manifest {
  return JSON.parse(readFileSync(join(packages, part, 'package.json'), 'utf8'));
}

function dependenciesOf(part: string): [string, string][] {
  return Object.entries(manifestOf(part).dependencies ?? {}).flatMap(([dependency, version]) => {
    const ours = /^soundpost-(.+)$/.exec(dependency)?.[1];
    return ours === undefined ? [[dependency, version]] : dependenciesOf(ours);
  });
}

const { private: _, scripts, devDependencies, dependencies, publishConfig, ...kept } = manifestOf(name);
const { access, provenance, ...published } = publishConfig;
const needed = Object.fromEntries(dependenciesOf(name).sort());
const manifest = {
  ...kept,
  ...published,
  publishConfig: { access, provenance },
  ...(Object.keys(needed).length === 0 ? {} : { dependencies: needed }),
};
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
copyFileSync(join(packages, name, 'README.md'), join(folder, 'README.md'));
copyFileSync(join(packages, '../LICENSE'), join(folder, 'LICENSE'));
