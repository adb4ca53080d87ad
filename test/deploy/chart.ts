/** deploy/helm/soundpost, rendered by Helm itself: script/helm's, else the machine's. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Json } from 'soundpost-testing/client';
import { FETCHED_HELM } from 'soundpost-testing/needs';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { projectFolder } from '../docs/markdown.ts';
import { type Outcome, ownNode, run } from '../house/command.ts';

/** One object of Kubernetes; its form is checked by the schemas. */
export type Manifest = Json;

export const chartFolder = join(projectFolder, 'deploy/helm/soundpost');
export const namespace = 'cell-1';

export const defaultValues: Json = parse(readFileSync(join(chartFolder, 'values.yaml'), 'utf8'));
export const valuesSchema: Json = JSON.parse(readFileSync(join(chartFolder, 'values.schema.json'), 'utf8'));

const command = existsSync(FETCHED_HELM) ? FETCHED_HELM : 'helm';

/** @param kubeconfig of the cluster that it talks to; none by default, whatever this machine has */
export function helm(args: readonly string[], kubeconfig = '/dev/null'): Promise<Outcome> {
  return run(projectFolder, command, args, { ...ownNode, KUBECONFIG: kubeconfig });
}

/** `helm template` with these values. */
export async function template(values: Json, ...args: readonly string[]): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-chart-'));
  try {
    const file = join(folder, 'values.yaml');
    await writeFile(file, stringify(values));
    return await helm(['template', 'soundpost', chartFolder, '--namespace', namespace, '-f', file, ...args]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What Kubernetes would be given. @throws Error with what Helm says against the values */
export async function render(values: Json, ...args: readonly string[]): Promise<Manifest[]> {
  const { code, output } = await template(values, ...args);
  if (code !== 0) throw new Error(output);
  return parseManifests(output);
}

function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document): Manifest => {
      // A repeated key is one of the errors.
      if (document.errors.length > 0) throw new Error(document.errors[0]?.message);
      return document.toJS();
    })
    .filter((manifest) => manifest !== null);
}
