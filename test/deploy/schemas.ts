/**
 * Whether manifests are what Kubernetes and KEDA take, by what the packages kubernetes-models and @kubernetes-models/keda make of their OpenAPI descriptions: validators, which
 * let fields pass that nobody knows, and types, which do not.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Json } from '../client.ts';
import { projectFolder } from '../docs/markdown.ts';
import { run } from '../house/command.ts';

const packageOf = (apiVersion: string): string =>
  apiVersion.startsWith('keda.sh/')
    ? `@kubernetes-models/keda/${apiVersion}`
    : `kubernetes-models/${apiVersion}`;

/** What the validator of its kind says; empty: nothing. Rejects where nobody knows the kind. */
export async function schemaFaults(manifest: Json): Promise<string[]> {
  const models = await import(packageOf(manifest.apiVersion));
  try {
    new models[manifest.kind](manifest).validate();
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

/** What the compiler says when each manifest stands in a program as an object of its kind; empty: nothing. */
export async function typeFaults(manifests: readonly Json[]): Promise<string> {
  // Where the packages are found.
  const cache = join(projectFolder, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'manifests-'));
  try {
    const file = join(folder, 'manifests.ts');
    const lines = manifests.map(
      (manifest) =>
        `import('${packageOf(manifest.apiVersion)}').I${manifest.kind} = ${JSON.stringify(manifest)};`,
    );
    await writeFile(file, lines.map((line, nth) => `export const manifest${nth}: ${line}\n`).join(''));
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'esnext'];
    const compiler = join(projectFolder, 'node_modules/.bin/tsc');
    const { output } = await run(projectFolder, compiler, [
      ...options,
      '--ignoreConfig',
      relative(projectFolder, file),
    ]);
    return output;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
