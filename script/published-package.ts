/**
 * Writes beside a package's `dist` what npm needs besides: README, LICENSE, of Soundpost itself its other `files`, and a package.json whose `exports` name what
 * was built, where those of the checkout name the sources. What of ours it uses is in the bundle, so it depends on the packages of others that those use.
 * What runs ffmpeg has our own builds of it as optional dependencies: here, since the checkout builds them and its lock file cannot name them.
 *
 *   node script/published-package.ts <name below packages/, or soundpost> <folder of the package>
 */
import { copyFileSync, cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOOLS_PACKAGES } from 'soundpost-media/packaged-tools';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly files: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  /** Fields that take the place of the checkout's. */
  readonly publishConfig: { readonly access: string; readonly provenance: boolean };
  readonly [field: string]: unknown;
}

const [name = '', folder = ''] = process.argv.slice(2);
const root = join(import.meta.dirname, '..');

function folderOf(part: string): string {
  return part === 'soundpost' ? root : join(root, 'packages', part);
}

function manifestOf(part: string): Manifest {
  return JSON.parse(readFileSync(join(folderOf(part), 'package.json'), 'utf8'));
}

function dependenciesOf(part: string): [string, string][] {
  return Object.entries(manifestOf(part).dependencies ?? {}).flatMap(([dependency, version]) => {
    const ours = /^soundpost-(.+)$/.exec(dependency)?.[1];
    return ours === undefined ? [[dependency, version]] : dependenciesOf(ours);
  });
}

const { private: _, scripts, devDependencies, dependencies, publishConfig, ...rest } = manifestOf(name);
// Of the checkout's root.
const { workspaces, allowScripts, overrides, ...kept } = rest;
const { access, provenance, ...published } = publishConfig;
const runsFfmpeg = ['soundpost', 'media'].includes(name);
const needed = Object.fromEntries(dependenciesOf(name).sort());
const manifest = {
  ...kept,
  ...published,
  publishConfig: { access, provenance },
  ...(Object.keys(needed).length === 0 ? {} : { dependencies: needed }),
  ...(runsFfmpeg
    ? { optionalDependencies: Object.fromEntries(TOOLS_PACKAGES.map((tools) => [tools, kept.version])) }
    : {}),
};
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
copyFileSync(join(folderOf(name), 'README.md'), join(folder, 'README.md'));
copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
if (name === 'soundpost') {
  const files = kept.files.filter((pattern) => pattern !== 'dist');
  for (const path of globSync(files, { cwd: root }))
    cpSync(join(root, path), join(folder, path), { recursive: true });
}
