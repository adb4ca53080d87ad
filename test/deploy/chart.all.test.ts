/** What the chart renders is what Kubernetes understands, and what the code does. No cluster is asked. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { metricTable } from 'soundpost-kit/observe/metrics/table';
import { Environment } from 'soundpost-kit/settings/environment';
import { publicBlocks } from 'soundpost-outbound/address-table';
import type { Json } from 'soundpost-testing/client';
import { beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { type Config, loadConfig } from '../../src/process/config.ts';
import { projectFolder } from '../docs/markdown.ts';
import { chartFolder, type Manifest, namespace, render } from './chart.ts';
import { restrictedFaults } from './pod-security.ts';
import { type KubernetesVersion, kubernetesVersions, schemaFaults, typeFaults } from './schemas.ts';
import { valueSets } from './value-sets.ts';

const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');
const versions = Object.keys(kubernetesVersions) as KubernetesVersion[];

const byKind = (manifests: readonly Manifest[], kind: string): Manifest[] =>
  manifests.filter((manifest) => manifest.kind === kind);
const nameOf = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;
const containerOf = ({ spec }: Manifest): Json => spec.template.spec.containers[0];
const labelsOf = ({ spec }: Manifest): Json => spec.template.metadata.labels;
const componentOf = (manifest: Manifest): string => labelsOf(manifest)['app.kubernetes.io/component'];

/** Of a Secret that only the cluster has. */
const SECRETS: Readonly<Record<string, string>> = {
  REDIS_PASSWORD: 'secret',
  REDIS_URL: 'redis://:secret@redis.example:6379',
};

/** What a process reads, of what the manifests know. */
function environmentOf(manifest: Manifest, manifests: readonly Manifest[]): Record<string, string> {
  const container = containerOf(manifest);
  const [config, secret] = container.envFrom.map(({ configMapRef, secretRef }: Json) =>
    manifests.find(({ kind, metadata }) =>
      configMapRef
        ? kind === 'ConfigMap' && metadata.name === configMapRef.name
        : kind === 'Secret' && metadata.name === secretRef.name,
    ),
  );
  const secrets = Object.entries<string>(secret?.data ?? {}).map(([name, value]) => [
    name,
    Buffer.from(value, 'base64').toString(),
  ]);
  const known: Record<string, string> = { ...config.data, ...Object.fromEntries(secrets) };
  for (const { name, value } of container.env ?? [])
    known[name] = (value ?? SECRETS[name]).replaceAll(
      /\$\((\w+)\)/g,
      (_: string, other: string) => known[other],
    );
  return known;
}

const configOf = (manifest: Manifest, manifests: readonly Manifest[]): Config =>
  loadConfig({ SECRET_KEY: 'x'.repeat(32), ...environmentOf(manifest, manifests) });

describe('the chart', { tags: 'helm' }, () => {
  describe.each(Object.keys(valueSets))('with %s', (set) => {
    let manifests: Manifest[];
    /** The three processes, and with a Redis all pods. */
    let ours: Manifest[];
    let pods: Manifest[];
    beforeAll(async () => {
      manifests = await render(valueSets[set]);
      pods = manifests.filter(({ spec }) => spec?.template?.spec?.containers);
      ours = pods.filter((pod) => labelsOf(pod)['app.kubernetes.io/name'] === 'soundpost');
    });

    it.each(versions)('is understood by the %s Kubernetes, to the last field', async (version) => {
      expect(manifests.length).toBeGreaterThan(8);
      for (const manifest of manifests)
        expect([nameOf(manifest), await schemaFaults(manifest, version)]).toEqual([nameOf(manifest), []]);
      expect(await typeFaults(manifests, version)).toBe('');
    });

    it('has each object once, under a name that Kubernetes takes', () => {
      const names = manifests.map(nameOf);
      expect(new Set(names).size).toBe(names.length);
      for (const { metadata } of manifests) expect(metadata.name).toMatch(/^[a-z][a-z0-9-]{0,62}$/);
    });

    it('sets variables that there are, to values that are valid', () => {
      const components = ['api', 'gateway', 'worker'].filter(
        (name) => name !== 'gateway' || set !== 'no gateway',
      );
      expect(ours.map(componentOf).toSorted()).toEqual(components);
      for (const manifest of ours) {
        const environment = environmentOf(manifest, manifests);
        // Of ours and for its Redis; the address holds it.
        const unknown = Object.keys(environment).filter((name) => !(name in Environment.shape));
        expect(unknown.filter((name) => name !== 'REDIS_PASSWORD')).toEqual([]);
        expect(environment.REDIS_URL).toMatch(/^rediss?:\/\//);
        expect(() => configOf(manifest, manifests)).not.toThrow();
      }
    });

    it('names Secrets, claims and Services that are made here, or are said to be there', () => {
      const given = ['my-secret', 'my-redis', 'my-claim', 'soundpost-tls', 'registry', 'mine'];
      const there = new Set([...manifests.map(({ metadata }) => metadata.name), ...given]);
      const text = JSON.stringify(manifests);
      const named = [
        ...text.matchAll(/"(?:secretKeyRef|configMapRef|secretRef|credentials)":\{[^}]*?"name":"([^"]+)"/g),
        ...text.matchAll(/"(?:claimName|secretName|serviceAccountName)":"([^"]+)"/g),
        ...text.matchAll(/"(?:service|scaleTargetRef)":\{[^}]*?"name":"([^"]+)"/g),
      ].map(([, name = '']) => name);
      expect(named.length).toBeGreaterThan(6);
      expect(named.filter((name) => !there.has(name))).toEqual([]);
      const services = new Set(byKind(manifests, 'Service').map(({ metadata }) => metadata.name));
      for (const manifest of ours) {
        const { GATEWAY_URL, GATEWAY_EVENTS_URL, REDIS_URL } = environmentOf(manifest, manifests);
        const hosts = [GATEWAY_URL, GATEWAY_EVENTS_URL, REDIS_URL].flatMap(
          (url) => URL.parse(url ?? '')?.hostname ?? [],
        );
        expect(hosts.filter((host) => !host.endsWith('.example') && !services.has(host))).toEqual([]);
      }
    });

    it('keeps the secrets of the API from the other processes, also where the Secret has them', () => {
      for (const manifest of ours) {
        const given = { ADMIN_KEY: 'a', BOOTSTRAP_API_KEY: 'b', GATEWAY_EVENTS_TOKEN: 'c' };
        const known = { ...given, ...environmentOf(manifest, manifests) };
        const seen = Object.keys(given).filter((name) => known[name as keyof typeof given] !== '');
        expect(seen).toEqual(componentOf(manifest) === 'api' ? Object.keys(given) : []);
      }
    });

    it('ends a gateway before it starts the next one, which would not be ready beside it', () => {
      for (const gateway of ours.filter((one) => componentOf(one) === 'gateway'))
        expect(gateway.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    });

    it('leaves no variable to the Services of the namespace, and no token to anybody', () => {
      for (const manifest of pods)
        expect(manifest.spec.template.spec).toMatchObject({
          enableServiceLinks: false,
          automountServiceAccountToken: false,
        });
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
        const config = configOf(manifest, manifests);
        const component = componentOf(manifest);
        const port = { api: config.API_PORT, gateway: config.GATEWAY_PORT, worker: config.WORKER_PORT }[
          component as 'api'
        ];
        const container = containerOf(manifest);
        expect(container.args).toEqual([component]);
        expect(commands).toContain(component);
        expect(container.ports.map(({ containerPort }: Json) => containerPort)).toEqual([port]);
        const paths = {
          startupProbe: '/health/live',
          livenessProbe: '/health/live',
          readinessProbe: '/health/ready',
        };
        for (const [probe, path] of Object.entries(paths))
          expect([probe, container[probe].httpGet]).toEqual([probe, { path, port: container.ports[0].name }]);
      }
      for (const { spec } of byKind(manifests, 'Service')) {
        const target = pods.find((pod) => matches(labelsOf(pod), spec.selector));
        const ports = containerOf(target).ports.map(({ name, containerPort }: Json) => [name, containerPort]);
        expect(spec.ports.map(({ port, targetPort }: Json) => [targetPort, port])).toEqual(ports);
      }
    });

    it('gives each process the time that it takes to stop', () => {
      const margin =
        Number(/CLOSE_MARGIN_MS = ([\d_]+)/.exec(read('src/cli/serve.ts'))?.[1]?.replaceAll('_', '')) / 1000;
      expect(margin).toBeGreaterThan(0);
      for (const manifest of ours) {
        const { SHUTDOWN_SECONDS } = configOf(manifest, manifests);
        const before = containerOf(manifest).lifecycle?.preStop?.sleep?.seconds ?? 0;
        expect(
          manifest.spec.template.spec.terminationGracePeriodSeconds,
          manifest.metadata.name,
        ).toBeGreaterThanOrEqual(before + SHUTDOWN_SECONDS + margin);
      }
    });

    it('meets the Pod Security Standard "restricted", with a read-only root', () => {
      for (const manifest of pods) {
        expect([manifest.metadata.name, restrictedFaults(manifest.spec.template)]).toEqual([
          manifest.metadata.name,
          [],
        ]);
        // Nothing has to lie on the nodes.
        expect(JSON.stringify(manifest)).not.toMatch(/Localhost|localhostProfile|hostPath/);
        const { securityContext, resources } = containerOf(manifest);
        expect(securityContext.readOnlyRootFilesystem).toBe(true);
        expect(Object.keys(resources.requests)).toEqual(expect.arrayContaining(['cpu', 'memory']));
        expect(resources.limits.memory).toMatch(/[MG]i$/);
        expect(resources.limits.cpu).toBeUndefined();
      }
    });

    it('shows why a process refused to start, such as marks that differ, and takes ADOPT', async () => {
      for (const manifest of ours) {
        expect(containerOf(manifest).terminationMessagePolicy).toBe('FallbackToLogsOnError');
      }
      const values = valueSets[set];
      const adopting = await render({ ...values, config: { ...values?.config, ADOPT: '1' } });
      expect(adopting.find(({ kind }) => kind === 'ConfigMap')?.data.ADOPT).toBe('1');
    });

    it('has no process write outside of its volumes', () => {
      for (const manifest of ours) {
        const mounts = containerOf(manifest).volumeMounts.map(({ name, mountPath }: Json) => [
          mountPath,
          name,
        ]);
        expect(read('Dockerfile')).toContain(`DATA_DIR=${mounts[0][0]}`);
        expect(mounts.map(([path]: string[]) => path)).toContain('/tmp');
        const volumes = manifest.spec.template.spec.volumes.map(({ name }: Json) => name);
        expect(mounts.map(([, name]: string[]) => name).toSorted()).toEqual(volumes.toSorted());
      }
    });

    it('keeps all pods beside a volume that one node has', () => {
      const once = byKind(manifests, 'PersistentVolumeClaim').some(
        ({ spec }) => spec.accessModes[0] === 'ReadWriteOnce',
      );
      for (const { spec } of ours) {
        const { affinity, topologySpreadConstraints, volumes } = spec.template.spec;
        const tied =
          once ||
          volumes.some(({ persistentVolumeClaim }: Json) => persistentVolumeClaim?.claimName === 'my-claim');
        expect([affinity !== undefined, topologySpreadConstraints !== undefined]).toEqual([tied, !tied]);
        const selectors = tied
          ? affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
          : topologySpreadConstraints;
        for (const { labelSelector } of selectors)
          expect(matches(spec.template.metadata.labels, labelSelector.matchLabels)).toBe(true);
      }
    });

    it('keeps Services, budgets, monitors and policies over pods that there are', () => {
      const labels = pods.map(labelsOf);
      const selectors = manifests.flatMap(({ kind, spec }): Json[] => {
        if (kind === 'Service') return [spec.selector];
        if (kind === 'PodDisruptionBudget' || kind === 'PodMonitor') return [spec.selector.matchLabels];
        if (kind !== 'NetworkPolicy') return [];
        const peers = [...(spec.ingress ?? []), ...(spec.egress ?? [])].flatMap(({ to = [], from = [] }) => [
          ...to,
          ...from,
        ]);
        const near = peers.filter(({ namespaceSelector, podSelector }) => podSelector && !namespaceSelector);
        return [spec.podSelector, ...near.map(({ podSelector }) => podSelector)].map(
          ({ matchLabels }) => matchLabels,
        );
      });
      expect(selectors.length).toBeGreaterThan(3);
      for (const selector of selectors)
        expect(labels.filter((own) => matches(own, selector))).not.toEqual([]);
      const budgets = byKind(manifests, 'PodDisruptionBudget').map(
        ({ spec }) => spec.selector.matchLabels['app.kubernetes.io/component'],
      );
      expect(budgets.toSorted()).toEqual(set === 'everything else' ? [] : ours.map(componentOf).toSorted());
      // Another release in the same namespace is nobody of ours.
      for (const selector of selectors) expect(selector['app.kubernetes.io/instance']).toBe('soundpost');
    });

    it('opens the public internet alone, and on the ports that the service uses', () => {
      const policies = byKind(manifests, 'NetworkPolicy');
      if (set === 'no network policies') {
        expect(policies).toEqual([]);
        return;
      }
      const more = valueSets[set].networkPolicy?.except ?? [];
      const blocks = new Map(publicBlocks().map(({ cidr, except }) => [cidr, except]));
      const egress = policies.flatMap(({ spec }) => spec.egress ?? []);
      const wide = egress.filter(({ to }) =>
        to.some(({ ipBlock }: Json) => ipBlock && !/\/(32|128)$/.test(ipBlock.cidr)),
      );
      expect(wide).toHaveLength(set === 'no gateway' ? 1 : 2);
      for (const { to, ports } of wide) {
        expect(to.map(({ ipBlock }: Json) => ipBlock.cidr)).toEqual([...blocks.keys()]);
        for (const { ipBlock } of to) {
          const own = more.filter((cidr: string) => cidr.includes(':') === ipBlock.cidr.includes(':'));
          expect(ipBlock.except.toSorted()).toEqual([...(blocks.get(ipBlock.cidr) ?? []), ...own].toSorted());
        }
        expect(ports.length).toBeGreaterThan(0);
      }
      const { OUTBOUND_PORTS } = configOf(ours[0], manifests);
      expect(wide[0].ports.map(({ port }: Json) => port)).toEqual(OUTBOUND_PORTS);
    });

    it('shuts whoever is not named anywhere', () => {
      if (set === 'no network policies') return;
      const policies = byKind(manifests, 'NetworkPolicy');
      const nothing = policies.find(({ metadata }) => metadata.name.endsWith('-nothing'));
      expect(nothing?.spec.policyTypes).toEqual(['Ingress', 'Egress']);
      for (const pod of ours)
        expect(matches(labelsOf(pod), nothing?.spec.podSelector.matchLabels)).toBe(true);
      const egress = policies.flatMap(({ spec }) => spec.egress ?? []);
      for (const rule of egress) expect(rule.to?.length, JSON.stringify(rule)).toBeGreaterThan(0);
    });

    it('lets through what the processes ask each other', () => {
      if (set === 'no network policies') return;
      const opened = (from: string, to: string): boolean =>
        byKind(manifests, 'NetworkPolicy').some(
          ({ spec }) =>
            ours.some(
              (pod) => componentOf(pod) === from && matches(labelsOf(pod), spec.podSelector.matchLabels),
            ) &&
            (spec.egress ?? []).some((rule: Json) =>
              rule.to.some(({ podSelector, namespaceSelector }: Json) => {
                const target = pods.find(
                  (pod) => (labelsOf(pod)['app.kubernetes.io/component'] ?? 'redis') === to,
                );
                return (
                  podSelector &&
                  !namespaceSelector &&
                  target &&
                  matches(labelsOf(target), podSelector.matchLabels)
                );
              }),
            ),
        );
      if (set !== 'no gateway') {
        expect(opened('worker', 'gateway')).toBe(true);
        expect(opened('gateway', 'api')).toBe(true);
      }
      const redis = pods.length > ours.length;
      for (const pod of ours) expect(opened(componentOf(pod), 'redis')).toBe(redis);
    });

    it('scales workers by what one of them holds, and sets no number beside', () => {
      const worker = ours.find((one) => componentOf(one) === 'worker');
      const scalers = [...byKind(manifests, 'ScaledObject'), ...byKind(manifests, 'HorizontalPodAutoscaler')];
      expect(worker?.spec.replicas).toBe(scalers.length > 0 ? undefined : 2);
      for (const { spec } of scalers) {
        expect(spec.scaleTargetRef.name).toBe(worker?.metadata.name);
        expect(spec.minReplicas ?? spec.minReplicaCount).toBeGreaterThan(0);
      }
      for (const { spec } of byKind(manifests, 'ScaledObject')) {
        const { WORKER_CONCURRENCY, DOWNLOADS_AHEAD } = configOf(worker, manifests);
        const [{ metadata }] = spec.triggers;
        expect(Number(metadata.threshold)).toBe(WORKER_CONCURRENCY + DOWNLOADS_AHEAD);
        const [, name = '', queue = '', states = '', asked = ''] =
          /max by \(state\) \((\w+)\{queue="(\w+)",state=~"([\w|]+)",namespace="([\w-]+)"\}/.exec(
            metadata.query,
          ) ?? [];
        expect(asked).toBe(namespace);
        const [, row] = Object.entries(metricTable).find(([metric]) => metric === name) ?? [];
        expect(states.split('|')).toEqual(['waiting', 'active']);
        expect(row?.labels).toMatchObject({
          queue: expect.arrayContaining([queue]),
          state: expect.arrayContaining(states.split('|')),
        });
      }
    });

    it('watches ports that there are, with the token that the processes want', () => {
      for (const { spec } of byKind(manifests, 'PodMonitor')) {
        const ports = spec.podMetricsEndpoints.map(({ port }: Json) => port);
        expect(new Set(ours.map((pod) => containerOf(pod).ports[0].name))).toEqual(new Set(ports));
        for (const endpoint of spec.podMetricsEndpoints)
          expect([endpoint.path, endpoint.authorization.credentials.key]).toEqual([
            '/metrics',
            'METRICS_TOKEN',
          ]);
      }
    });
  });

  describe('of each value', () => {
    const rendered = async (set: string): Promise<Manifest[]> => render(valueSets[set]);
    const find = (manifests: readonly Manifest[], kind: string, name: string): Json =>
      manifests.find((one) => one.kind === kind && one.metadata.name === name);

    it('the ingress leads to the API and the gateway, by the addresses that callers are told', async () => {
      const manifests = await rendered('ingress with TLS');
      const [{ spec, metadata }] = byKind(manifests, 'Ingress');
      expect(spec.tls).toEqual([
        { secretName: 'soundpost-tls', hosts: ['soundpost.example', 'gateway.soundpost.example'] },
      ]);
      const backends = spec.rules.map(({ host, http }: Json) => [host, http.paths[0].backend.service.name]);
      expect(backends).toEqual([
        ['soundpost.example', 'soundpost-api'],
        ['gateway.soundpost.example', 'soundpost-gateway'],
      ]);
      expect(metadata.annotations).toMatchObject({
        'nginx.ingress.kubernetes.io/proxy-body-size': '0',
        'cert-manager.io/cluster-issuer': 'letsencrypt',
      });
      expect(find(manifests, 'ConfigMap', 'soundpost').data).toMatchObject({
        PUBLIC_URL: 'https://soundpost.example',
        GATEWAY_PUBLIC_URL: 'https://gateway.soundpost.example',
        TRUST_PROXY: '1',
      });
      const behind = await rendered('ingress behind TLS of others');
      expect(find(behind, 'ConfigMap', 'soundpost').data).toMatchObject({
        PUBLIC_URL: 'https://soundpost.example/audio',
        TRUST_PROXY: '2',
      });
      expect(byKind(behind, 'Ingress')[0].spec.rules).toHaveLength(1);
    });

    it('the strong sandbox is of the pods that run ffmpeg', async () => {
      const strong = (await rendered('strong sandbox')).filter(({ kind }) => kind === 'Deployment');
      const of = (name: string): Json =>
        strong.find(({ metadata }) => metadata.name === name)?.spec.template.spec;
      for (const name of ['soundpost-worker', 'soundpost-gateway'])
        expect(of(name)).toMatchObject({ hostUsers: false, runtimeClassName: 'kata' });
      expect([of('soundpost-api').hostUsers, of('soundpost-api').runtimeClassName]).toEqual([
        undefined,
        undefined,
      ]);
    });

    it('numbers reach the processes as they were written', async () => {
      const { data } = find(await rendered('everything else'), 'ConfigMap', 'sp');
      expect(data).toMatchObject({ MAX_INPUT_BYTES: '5368709120', OTEL_TRACES_SAMPLER_ARG: '0.25' });
    });

    it('pods are replaced when what they read changes, and only then', async () => {
      const sums = async (values: Json): Promise<Json> =>
        find(await render(values), 'Deployment', 'soundpost-api').spec.template.metadata.annotations;
      const { default: values } = valueSets;
      const before = await sums(values);
      expect(await sums({ ...values, worker: { replicas: 5 } })).toEqual(before);
      expect(await sums({ ...values, config: { LOG_LEVEL: 'debug' } })).not.toEqual(before);
      const secret = { values: { ...values.secret.values, ADMIN_KEY: 'a'.repeat(16) } };
      expect(await sums({ ...values, secret })).not.toEqual(before);
    });

    it('what may never change between versions names none', async () => {
      for (const manifest of await rendered('default')) {
        const { spec } = manifest;
        const fixed = JSON.stringify([
          spec?.selector,
          spec?.volumeClaimTemplates,
          spec?.template?.metadata.labels,
        ]);
        expect(fixed).not.toContain('helm.sh/chart');
        expect(fixed).not.toContain('app.kubernetes.io/version');
      }
    });

    it('the version is the service’s', () => {
      const { version } = JSON.parse(read('package.json'));
      const chart = readFileSync(join(chartFolder, 'Chart.yaml'), 'utf8');
      expect(chart).toContain(`\nappVersion: ${version}\n`);
      expect(chart).toContain(`\nversion: ${version}\n`);
    });
  });
});

it('a field that nobody knows is noticed, a value of the wrong kind, and what only one version has', async () => {
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: 'b' } };
  for (const version of versions) {
    expect(await typeFaults([config], version)).toBe('');
    expect(await typeFaults([{ ...config, datas: {} }], version)).toMatch(/datas.* does not exist/);
    expect(await schemaFaults({ ...config, data: { a: 1 } }, version)).not.toEqual([]);
  }
  // Came with 1.34.
  const file = { volumeName: 'a', path: 'b', key: 'C' };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a' },
    spec: { containers: [{ name: 'a', env: [{ name: 'C', valueFrom: { fileKeyRef: file } }] }] },
  };
  expect(await typeFaults([pod], 'newer')).toBe('');
  expect(await typeFaults([pod], 'older')).toMatch(/fileKeyRef.* does not exist/);
});

function matches(labels: Json, selector: Json): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}
