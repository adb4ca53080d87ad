/** The secrets that the chart makes stay as they are, by Helm's own install and upgrade. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Json } from 'soundpost-testing/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chartFolder, helm } from './chart.ts';
import { type KubernetesApi, startKubernetesApi } from './kubernetes-api.ts';

let folder: string;
let cluster: KubernetesApi;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-helm-'));
  cluster = await startKubernetesApi(folder, ['kube-system', 'cell-1']);
});
afterEach(async () => {
  await cluster.close();
  await rm(folder, { recursive: true, force: true });
});

/** @throws Error with what Helm says */
async function run(...args: readonly string[]): Promise<string> {
  const all = [...args, '--namespace', 'cell-1'];
  const { code, output } = await helm(all, cluster.kubeconfig);
  if (code !== 0) throw new Error(`helm ${all.join(' ')}: ${output}`);
  return output;
}

const put = (command: string, ...more: readonly string[]): Promise<string> =>
  run(command, 'soundpost', chartFolder, '--disable-openapi-validation', ...more);

const secrets = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries<string>(cluster.get('cell-1', 'secrets/soundpost').data).map(([name, value]) => [
      name,
      Buffer.from(value, 'base64').toString(),
    ]),
  );

describe('the Secret that the chart makes', { tags: 'helm' }, () => {
  it('has what it needs, of enough letters and digits, others in each release', async () => {
    await put('install');
    const first = secrets();
    expect(Object.keys(first).toSorted()).toEqual(['METRICS_TOKEN', 'REDIS_PASSWORD', 'SECRET_KEY']);
    for (const value of Object.values(first)) expect(value).toMatch(/^[A-Za-z0-9]{64}$/);
    expect(new Set(Object.values(first)).size).toBe(3);
    await run('install', 'other', chartFolder, '--disable-openapi-validation');
    const other: Json = cluster.get('cell-1', 'secrets/other-soundpost').data;
    expect(Buffer.from(other.SECRET_KEY, 'base64').toString()).not.toBe(first.SECRET_KEY);
  });

  it('is the same after an upgrade, with what was added', async () => {
    await put('install');
    const before = secrets();
    await put('upgrade', '--set', 'worker.replicas=3,secret.values.ADMIN_KEY=aaaaaaaaaaaaaaaa');
    expect(secrets()).toEqual({ ...before, ADMIN_KEY: 'aaaaaaaaaaaaaaaa' });
    await put('upgrade', '--set', 'networkPolicy.enabled=false');
    expect(secrets().SECRET_KEY).toBe(before.SECRET_KEY);
  });

  it('stays when the release goes, as do its files, and the next one takes it over', async () => {
    await put('install');
    const before = secrets();
    await run('uninstall', 'soundpost');
    expect(cluster.get('cell-1', 'configmaps/soundpost')).toBeUndefined();
    expect(cluster.get('cell-1', 'persistentvolumeclaims/soundpost-data')).toBeDefined();
    expect(secrets()).toEqual(before);
    await put('install');
    expect(secrets()).toEqual(before);
  });

  it('has the key that it is given', async () => {
    await put('install', '--set', `secret.values.SECRET_KEY=${'k'.repeat(32)}`);
    expect(secrets().SECRET_KEY).toBe('k'.repeat(32));
  });

  it('is made where its namespace comes with it, which is after rendering', async () => {
    const args = ['template', 'soundpost', chartFolder, '--dry-run=server', '--disable-openapi-validation'];
    const { code, output } = await helm([...args, '--namespace', 'new'], cluster.kubeconfig);
    expect(code, output).toBe(0);
    expect(output).toMatch(/^ {2}SECRET_KEY: \w+/m);
  });

  it('is not made beside one that is there', async () => {
    await put('install', '--set', 'secret.existingSecret=mine');
    expect(cluster.get('cell-1', 'secrets/soundpost')).toBeUndefined();
  });

  it('the notes have the two commands to a first job', async () => {
    const notes = (await put('install')).split('NOTES:')[1] ?? '';
    expect(notes).toContain(
      'kubectl -n cell-1 exec deploy/soundpost-api -- node src/main.ts keys create --name first',
    );
    expect(notes.match(/^ {2}\S.*$/gm)).toHaveLength(2);
  });
});
