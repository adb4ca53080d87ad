/**
 * Whether manifests are what Kubernetes, the Gateway API, KEDA and the Prometheus Operator take, by what the packages of kubernetes-models make of their OpenAPI descriptions: validators, which
 * let fields pass that nobody knows, and types, which do not.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Json } from 'soundpost-testing/client';
import { projectFolder } from '../docs/markdown.ts';
import { run } from '../house/command.ts';

/** The packages with the schemas of two versions of Kubernetes; a test says what tells them apart. */
export const kubernetesVersions = { older: 'kubernetes-models-1.33', newer: 'kubernetes-models' } as const;
export type KubernetesVersion = keyof typeof kubernetesVersions;

const ofOthers: Readonly<Record<string, string>> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'keda.sh': '@kubernetes-models/keda',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

function packageOf(apiVersion: string, version: KubernetesVersion): string {
  const [group = ''] = apiVersion.split('/');
  return `${ofOthers[group] ?? kubernetesVersions[version]}/${apiVersion}`;
}

/** What the validator of its kind says; empty: nothing. Rejects where nobody knows the kind. */
export async function schemaFaults(manifest: Json, version: KubernetesVersion): Promise<string[]> {
  const models = await import(packageOf(manifest.apiVersion, version));
  try {
    new models[manifest.kind](manifest).validate();
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

/** What the compiler says when each manifest stands in a program as an object of its kind; empty: nothing. */
export async function typeFaults(manifests: readonly Json[], version: KubernetesVersion): Promise<string> {
  // Where the packages are found.
  const cache = join(projectFolder, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'manifests-'));
  try {
    const file = join(folder, 'manifests.ts');
    const lines = manifests.map(
      (manifest) =>
        `import('${packageOf(manifest.apiVersion, version)}').I${manifest.kind} = ${JSON.stringify(manifest)};`,
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
