/** deploy/kubernetes says what Kubernetes understands, and what the code does. No cluster is asked. */
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createProgram } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/config.ts';
import { metricTable } from '../../src/observe/metrics/table.ts';
import { publicBlocks } from '../../src/outbound/address-table.ts';
import { Environment } from '../../src/settings/environment.ts';
import type { Json } from '../client.ts';
import { projectFolder } from '../docs/markdown.ts';
import { run } from '../house/command.ts';
import { build, type Manifest, readManifests } from './kustomization.ts';
import { schemaFaults, typeFaults } from './schemas.ts';

const folder = join(projectFolder, 'deploy/kubernetes');
const overlays = globSync('overlays/*', { cwd: folder });
const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');

const containersOf = ({ spec }: Manifest): Json[] => spec?.template?.spec?.containers ?? [];
const byKind = (manifests: readonly Manifest[], kind: string): Manifest[] =>
  manifests.filter((manifest) => manifest.kind === kind);
const nameOf = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;

it('every file belongs to a kustomization, or or is an example', () => {
  const used = new Set(
    overlays.flatMap((overlay) => build(join(folder, overlay)).files).map((file) => relative(folder, file)),
  );
  const files = globSync('**/*.*', { cwd: folder });
  expect(files.length).toBeGreaterThan(10);
  const unused = files.filter((file) => !used.has(file) && !/\.example\.yaml$/.test(file));
  expect(unused).toEqual([]);
});

describe.each(overlays)('%s', (overlay) => {
  const { manifests } = build(join(folder, overlay));
  const pods = manifests.filter((manifest) => containersOf(manifest).length > 0);
  const configMap = byKind(manifests, 'ConfigMap').find(({ metadata }) => metadata.name === 'soundpost');
  const ours = pods.filter(
    ({ spec }) => spec.template.metadata.labels['app.kubernetes.io/name'] === 'soundpost',
  );
  /** What a process of ours reads, of what the manifests know; `fieldRef` and the like as 2. */
  const environmentOf = (manifest: Manifest): Record<string, string> => ({
    ...configMap?.data,
    ...Object.fromEntries(
      (containersOf(manifest)[0].env ?? []).map(({ name, value }: Json) => [name, value ?? '2']),
    ),
  });

  it('is understood by Kubernetes and KEDA, to the last field', async () => {
    expect(manifests.length).toBeGreaterThan(10);
    for (const manifest of manifests)
      expect([nameOf(manifest), await schemaFaults(manifest)]).toEqual([nameOf(manifest), []]);
    expect(await typeFaults(manifests)).toBe('');
  });

  it('has each object once', () => {
    const names = manifests.map(nameOf);
    expect(new Set(names).size).toBe(names.length);
  });

  it('sets variables that there are, to values that are valid', () => {
    expect(ours.map(({ metadata }) => metadata.name).toSorted()).toEqual(['api', 'gateway', 'worker']);
    for (const manifest of ours) {
      const environment = environmentOf(manifest);
      const unknown = Object.keys(environment).filter((name) => !(name in Environment.shape));
      expect(unknown).toEqual([]);
      expect(() => loadConfig({ ...environment, SECRET_KEY: 'x'.repeat(32) })).not.toThrow();
    }
  });

  it('ends a gateway before it starts the next one, which would not be ready beside it', () => {
    const gateway = ours.find(({ metadata }) => metadata.name === 'gateway');
    expect(gateway?.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  });

  it('leaves no variable to the Services of the namespace', () => {
    // Kubernetes would set API_PORT=tcp://… for a Service "api".
    for (const { metadata, spec } of ours)
      expect([metadata.name, spec.template.spec.enableServiceLinks]).toEqual([metadata.name, false]);
  });

  it('asks for health where it is answered', () => {
    const answered = new Set(
      ['src/api/routes/health.ts', 'src/worker/health.ts', 'src/gateway/app.ts']
        .flatMap((file) => [...read(file).matchAll(/'(\/health\/\w+)'/g)])
        .map(([, path]) => path),
    );
    expect([...answered].toSorted()).toEqual(['/health/live', '/health/ready']);
    const commands = createProgram({ say: () => undefined, complain: () => undefined }).commands.map(
      (command) => command.name(),
    );
    for (const manifest of ours) {
      const config = loadConfig({ ...environmentOf(manifest), SECRET_KEY: 'x'.repeat(32) });
      const port = { api: config.API_PORT, gateway: config.GATEWAY_PORT, worker: config.WORKER_PORT }[
        manifest.metadata.name as 'api'
      ];
      const [container] = containersOf(manifest);
      expect(container.args).toEqual([manifest.metadata.name]);
      expect(commands).toContain(container.args[0]);
      const ports = container.ports.map(({ containerPort }: Json) => containerPort);
      expect(ports).toEqual([port]);
      const paths = {
        startupProbe: '/health/live',
        livenessProbe: '/health/live',
        readinessProbe: '/health/ready',
      };
      for (const [probe, path] of Object.entries(paths)) {
        expect([probe, container[probe].httpGet]).toEqual([probe, { path, port: container.ports[0].name }]);
      }
    }
  });

  it('gives each process the time that it takes to stop', () => {
    const margin =
      Number(/CLOSE_MARGIN_MS = ([\d_]+)/.exec(read('src/cli/serve.ts'))?.[1]?.replaceAll('_', '')) / 1000;
    expect(margin).toBeGreaterThan(0);
    for (const manifest of ours) {
      const { SHUTDOWN_SECONDS } = loadConfig({ ...environmentOf(manifest), SECRET_KEY: 'x'.repeat(32) });
      const before = containersOf(manifest)[0].lifecycle?.preStop?.sleep?.seconds ?? 0;
      expect(
        manifest.spec.template.spec.terminationGracePeriodSeconds,
        manifest.metadata.name,
      ).toBeGreaterThanOrEqual(before + SHUTDOWN_SECONDS + margin);
    }
  });

  it('meets the Pod Security Standard "restricted", with a read-only root', () => {
    for (const manifest of pods) {
      const { securityContext, volumes, hostNetwork, hostPID, hostIPC } = manifest.spec.template.spec;
      expect(securityContext).toMatchObject({ runAsNonRoot: true });
      expect(securityContext.seccompProfile.type).toBe('RuntimeDefault');
      expect([hostNetwork, hostPID, hostIPC]).toEqual([undefined, undefined, undefined]);
      const kinds = (volumes ?? [])
        .flatMap((volume: Json) => Object.keys(volume))
        .filter((key: string) => key !== 'name');
      for (const kind of kinds)
        expect(['emptyDir', 'ephemeral', 'persistentVolumeClaim', 'configMap', 'secret']).toContain(kind);
      for (const container of containersOf(manifest)) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(Object.keys(container.resources.requests)).toEqual(expect.arrayContaining(['cpu', 'memory']));
        expect(container.resources.limits.memory).toMatch(/[MG]i$/);
      }
    }
  });

  it('has no process write outside of its volumes', () => {
    for (const manifest of ours) {
      const mounts = containersOf(manifest)[0].volumeMounts.map(({ mountPath }: Json) => mountPath);
      expect(read('Dockerfile')).toContain(`DATA_DIR=${mounts[0]}`);
      expect(mounts).toContain('/tmp');
    }
  });

  it('keeps Services, budgets and policies over pods that there are', () => {
    const labels = pods.map(({ spec }) => spec.template.metadata.labels);
    const selectors = manifests.flatMap(({ kind, spec }): Json[] => {
      if (kind === 'Service') return [spec.selector];
      if (kind === 'PodDisruptionBudget') return [spec.selector.matchLabels];
      if (kind !== 'NetworkPolicy') return [];
      const peers = [...(spec.ingress ?? []), ...(spec.egress ?? [])].flatMap(({ to = [], from = [] }) => [
        ...to,
        ...from,
      ]);
      // A Redis may be elsewhere.
      const near = peers.filter(
        ({ namespaceSelector, podSelector }) =>
          podSelector && !namespaceSelector && podSelector.matchLabels['app.kubernetes.io/name'] !== 'redis',
      );
      return [spec.podSelector, ...near.map(({ podSelector }) => podSelector)].map(
        ({ matchLabels }) => matchLabels,
      );
    });
    expect(selectors.length).toBeGreaterThan(10);
    for (const selector of selectors) {
      expect(
        labels.filter((own) => Object.entries(selector).every(([key, value]) => own[key] === value)),
      ).not.toEqual([]);
    }
    const budgets = byKind(manifests, 'PodDisruptionBudget').map(({ metadata }) => metadata.name);
    expect(budgets.toSorted()).toEqual(['api', 'gateway', 'worker']);
  });

  it('opens the public internet alone, and on the ports that the service uses', () => {
    const blocks = new Map(publicBlocks().map(({ cidr, except }) => [cidr, except]));
    const egress = byKind(manifests, 'NetworkPolicy').flatMap(({ spec }) => spec.egress ?? []);
    const wide = egress.filter(({ to }) =>
      to.some(({ ipBlock }: Json) => ipBlock && !/\/(32|128)$/.test(ipBlock.cidr)),
    );
    expect(wide).toHaveLength(2);
    for (const { to, ports } of wide) {
      expect(to.map(({ ipBlock }: Json) => ipBlock.cidr)).toEqual([...blocks.keys()]);
      for (const { ipBlock } of to)
        expect(ipBlock.except.toSorted()).toEqual(blocks.get(ipBlock.cidr)?.toSorted());
      expect(ports.length).toBeGreaterThan(0);
    }
    const { OUTBOUND_PORTS } = loadConfig({});
    expect(wide[0].ports.map(({ port }: Json) => port)).toEqual(OUTBOUND_PORTS);
    // Whoever is not named anywhere may nothing.
    const all = byKind(manifests, 'NetworkPolicy').find(({ metadata }) => metadata.name === 'nothing');
    expect(all?.spec).toEqual({
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'soundpost' } },
      policyTypes: ['Ingress', 'Egress'],
    });
    for (const rule of egress) expect(rule.to?.length, JSON.stringify(rule)).toBeGreaterThan(0);
  });

  it('scales workers by what one of them holds, and none that runs a job away', () => {
    const [scaled] = byKind(manifests, 'ScaledObject');
    if (scaled === undefined) return;
    const worker = ours.find(({ metadata }) => metadata.name === scaled.spec.scaleTargetRef.name);
    expect(worker?.spec.replicas).toBeUndefined();
    const { WORKER_CONCURRENCY, DOWNLOADS_AHEAD } = loadConfig({
      ...environmentOf(worker),
      SECRET_KEY: 'x'.repeat(32),
    });
    const [{ metadata }] = scaled.spec.triggers;
    expect(Number(metadata.threshold)).toBe(WORKER_CONCURRENCY + DOWNLOADS_AHEAD);
    const [, name = '', queue = '', states = '', namespace = ''] =
      /max by \(state\) \((\w+)\{queue="(\w+)",state=~"([\w|]+)",namespace="([\w-]+)"\}/.exec(
        metadata.query,
      ) ?? [];
    expect(namespace).toBe(scaled.metadata.namespace);
    const [, row] = Object.entries(metricTable).find(([metric]) => metric === name) ?? [];
    expect(states.split('|')).toEqual(['waiting', 'active']);
    expect(row?.labels).toMatchObject({
      queue: expect.arrayContaining([queue]),
      state: expect.arrayContaining(states.split('|')),
    });
    expect(scaled.spec.minReplicaCount).toBeGreaterThan(0);
  });

  const kubectl = run(projectFolder, 'sh', ['-c', 'kubectl version --client']).then(({ code }) => code === 0);
  it('is what kubectl makes of it, where there is one', async (context) => {
    if (!(await kubectl)) context.skip('there is no kubectl here');
    const { code, output } = await run(projectFolder, 'kubectl', ['kustomize', join(folder, overlay)]);
    expect(code, output).toBe(0);
    // A generated ConfigMap has a hash behind its name there.
    const text = output.replaceAll(/\bsoundpost-[0-9a-z]{10}\b/g, 'soundpost');
    const theirs = parseAllDocuments(text).map((document): Manifest => document.toJS());
    expect(new Map(theirs.map((manifest) => [nameOf(manifest), manifest]))).toEqual(
      new Map(manifests.map((manifest) => [nameOf(manifest), manifest])),
    );
  });
});

it('a field that nobody knows is noticed, and a value of the wrong kind', async () => {
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: 'b' } };
  expect(await typeFaults([config])).toBe('');
  expect(await typeFaults([{ ...config, datas: {} }])).toMatch(/datas.* does not exist/);
  expect(await schemaFaults({ ...config, data: { a: 1 } })).not.toEqual([]);
});

it('the forms to fill in hold no secret, and name variables that there are', () => {
  const examples = globSync('**/*.example.yaml', { cwd: folder });
  expect(examples.length).toBeGreaterThan(0);
  for (const manifest of examples.flatMap((file) => readManifests(join(folder, file)))) {
    expect(Object.values(manifest.stringData).filter((value) => value !== '')).toEqual([]);
    expect(Object.keys(manifest.stringData).filter((name) => !(name in Environment.shape))).toEqual([]);
  }
});
