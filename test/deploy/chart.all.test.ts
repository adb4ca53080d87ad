/** What the chart renders is what Kubernetes understands, and what the code does. No cluster is asked. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { metricTable } from 'soundpost-kit/observe/metrics/table';
import { Environment, secretReaders } from 'soundpost-kit/settings/environment';
import { publicBlocks } from 'soundpost-outbound/address-table';
import type { Json } from 'soundpost-testing/client';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createProgram } from '../../src/cli/program.ts';
import { type Config, loadConfig } from '../../src/process/config.ts';
import { projectFolder } from '../docs/markdown.ts';
import { run } from '../house/command.ts';
import { chartFolder, helm, type Manifest, namespace, render } from './chart.ts';
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

/** What a process reads, of what the manifests know; a name whose Secret is elsewhere is left out. */
function environmentOf(manifest: Manifest, manifests: readonly Manifest[]): Record<string, string> {
  const { env = [], envFrom } = containerOf(manifest);
  const named = (kind: string, name: string): Json =>
    manifests.find((one) => one.kind === kind && one.metadata.name === name)?.data;
  const known: Record<string, string> = {};
  for (const { configMapRef } of envFrom) Object.assign(known, named('ConfigMap', configMapRef?.name));
  for (const { name, value, valueFrom } of env) {
    const { secretKeyRef } = valueFrom ?? {};
    const sealed = named('Secret', secretKeyRef?.name)?.[secretKeyRef?.key];
    const given = value ?? (sealed && Buffer.from(sealed, 'base64').toString()) ?? SECRETS[name];
    if (given !== undefined)
      known[name] = given.replaceAll(/\$\((\w+)\)/g, (_: string, other: string) => known[other]);
  }
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
      const given = ['my-secret', 'my-redis', 'my-claim', 'soundpost-tls', 'registry', 'mine', 'a-whole-one'];
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

    it('hands each process the secrets that it reads, and no Secret as a whole', () => {
      for (const manifest of ours) {
        const { env, envFrom } = containerOf(manifest);
        const names = new Set<string>(env.map(({ name }: Json) => name));
        const read = Object.entries<readonly string[]>(secretReaders)
          .filter(([, readers]) => readers.includes(componentOf(manifest)))
          .map(([name]) => name)
          .filter((name) => !name.startsWith('S3_') || valueSets[set].storage?.kind === 's3');
        expect(Object.keys(secretReaders).filter((name) => names.has(name))).toEqual(read);
        const own = set === 'everything else' && componentOf(manifest) === 'worker' ? ['a-whole-one'] : [];
        expect(envFrom.flatMap(({ secretRef }: Json) => secretRef?.name ?? [])).toEqual(own);
        // A Secret without one of them starts nevertheless; without SECRET_KEY it says so.
        for (const { name, valueFrom } of env)
          if (name in secretReaders && valueFrom.secretKeyRef.name !== 'mine')
            expect([name, valueFrom.secretKeyRef.optional]).toEqual([name, name !== 'SECRET_KEY']);
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
      const [test] = byKind(manifests, 'Pod');
      expect(restrictedFaults(test)).toEqual([]);
      expect(test.spec.containers[0].securityContext.readOnlyRootFilesystem).toBe(true);
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
        expect([affinity?.podAffinity !== undefined, topologySpreadConstraints !== undefined]).toEqual([
          tied,
          !tied,
        ]);
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

    it('sets no number of pods beside what scales them, and never none', () => {
      const scalers = [...byKind(manifests, 'ScaledObject'), ...byKind(manifests, 'HorizontalPodAutoscaler')];
      const scaled = scalers.map(({ spec }) => spec.scaleTargetRef.name);
      for (const { spec, metadata } of ours)
        expect([metadata.name, spec.replicas === undefined]).toEqual([
          metadata.name,
          scaled.includes(metadata.name),
        ]);
      expect(scaled.filter((name) => !ours.some(({ metadata }) => metadata.name === name))).toEqual([]);
      for (const { spec } of scalers) expect(spec.minReplicas ?? spec.minReplicaCount).toBeGreaterThan(0);
    });

    it('scales workers by what one of them holds', () => {
      const worker = ours.find((one) => componentOf(one) === 'worker');
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

    it('HTTPRoutes lead to the same, and tell callers so', async () => {
      const manifests = await rendered('HTTPRoutes');
      const routes = byKind(manifests, 'HTTPRoute').map(({ spec }) => [
        spec.hostnames,
        spec.rules[0].backendRefs,
        spec.rules[0].timeouts,
      ]);
      expect(routes).toEqual([
        [['soundpost.example'], [{ name: 'soundpost-api', port: 8080 }], { request: '0s' }],
        [['gateway.soundpost.example'], [{ name: 'soundpost-gateway', port: 8081 }], { request: '0s' }],
      ]);
      for (const [, [{ name, port }]] of routes)
        expect(find(manifests, 'Service', name).spec.ports[0].port).toBe(port);
      expect(find(manifests, 'ConfigMap', 'soundpost').data).toMatchObject({
        PUBLIC_URL: 'https://soundpost.example',
        GATEWAY_PUBLIC_URL: 'https://gateway.soundpost.example',
        TRUST_PROXY: '1',
      });
    });

    it('a digest names the image, whatever the tag says', async () => {
      const digest = `sha256:${'0a'.repeat(32)}`;
      const image = { repository: 'registry.example/soundpost', tag: '1.2.3', digest };
      const manifests = await render({ ...valueSets.default, image });
      const images = manifests.flatMap(({ kind, spec }) =>
        kind === 'Pod' ? spec.containers : kind === 'Deployment' ? spec.template.spec.containers : [],
      );
      expect(images.map((container: Json) => container.image)).toEqual(
        Array.from({ length: 4 }, () => `registry.example/soundpost@${digest}`),
      );
    });

    it('each part has pods, places and variables of its own', async () => {
      const manifests = await rendered('everything else');
      const [api, worker, gateway] = ['api', 'worker', 'gateway'].map((name) =>
        find(manifests, 'Deployment', `sp-${name}`),
      );
      const ofWorker = worker.spec.selector.matchLabels;
      expect(worker.spec.template.spec).toMatchObject({
        nodeSelector: { pool: 'audio' },
        tolerations: [{ key: 'spot', operator: 'Exists' }],
        priorityClassName: 'low',
        affinity: { nodeAffinity: expect.anything() },
        topologySpreadConstraints: [{ topologyKey: 'zone', labelSelector: { matchLabels: ofWorker } }],
      });
      expect(api.spec.template.spec).toMatchObject({
        nodeSelector: { 'kubernetes.io/arch': 'amd64' },
        tolerations: [{ key: 'audio', operator: 'Exists' }],
        priorityClassName: 'batch',
      });
      const annotations = [api, worker, gateway].map(({ spec }) => spec.template.metadata.annotations);
      expect(annotations.map((one) => [one['example.com/a'], one['example.com/worker']])).toEqual([
        ['b', undefined],
        ['c', 'd'],
        ['b', undefined],
      ]);
      const proxy = { name: 'OUTBOUND_PROXY', valueFrom: { secretKeyRef: { name: 'mine', key: 'proxy' } } };
      const proxies = [api, worker].map((one) =>
        containerOf(one).env.filter(({ name }: Json) => name === 'OUTBOUND_PROXY'),
      );
      expect(proxies).toEqual([[expect.not.objectContaining(proxy)], [proxy]]);
    });

    it('alerts and dashboard are the files of deploy, to the last byte', async () => {
      const manifests = await rendered('keda, with a PodMonitor');
      const [rule] = byKind(manifests, 'PrometheusRule');
      expect(rule.spec).toEqual(parse(read('deploy/prometheus/alerts.yml')));
      expect(rule.metadata.labels).toMatchObject({ release: 'kube-prometheus-stack' });
      const { data, metadata } = find(manifests, 'ConfigMap', 'soundpost-dashboard');
      expect(data['soundpost.json'].trim()).toBe(read('deploy/grafana/soundpost.json').trim());
      expect(metadata.labels.grafana_dashboard).toBe('1');
    });

    it('`helm test` ends well once API and gateway are ready, and else says what one answered', async () => {
      const [test] = byKind(await rendered('default'), 'Pod');
      expect(test.metadata.annotations['helm.sh/hook']).toBe('test');
      const [, ...command] = test.spec.containers[0].command;
      const answers: number[] = [503, 200, 200];
      const server = createServer((_, response) => {
        response.statusCode = answers.shift() ?? 500;
        response.end('{"status":"error","redis":"away"}');
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const here = command.map((word: string) =>
        word.replace(/^http:..soundpost-(api|gateway):\d+/, `http://127.0.0.1:${port}`),
      );
      expect(await run(projectFolder, process.execPath, here)).toEqual({
        code: 0,
        output: `http://127.0.0.1:${port}/health/ready: ok\n`.repeat(2),
      });
      const hurried = here.map((word: string) => word.replace('120_000', '-1'));
      expect(await run(projectFolder, process.execPath, hurried)).toEqual({
        code: 1,
        output: `http://127.0.0.1:${port}/health/ready: 500 {"status":"error","redis":"away"}\n`,
      });
      server.close();
    });

    it.each(['1.30.0', '1.33.0', '1.36.0'])(
      'Helm lints and renders all templates for Kubernetes %s, within "restricted"',
      async (version) => {
        const folder = await mkdtemp(join(tmpdir(), 'soundpost-lint-'));
        // Together every template.
        const sets = ['default', 'everything else', 'ingress with TLS', 'HTTPRoutes', 'hpa'];
        for (const set of [...sets, 'keda, with a PodMonitor']) {
          const file = join(folder, 'values.yaml');
          await writeFile(file, stringify(valueSets[set]));
          const lint = await helm(['lint', chartFolder, '--strict', '--kube-version', version, '-f', file]);
          expect(lint).toMatchObject({ code: 0, output: expect.stringContaining('0 chart(s) failed') });
          const manifests = await render(valueSets[set], '--kube-version', version);
          const pods = manifests.map((one) => (one.kind === 'Pod' ? one : one.spec?.template));
          expect(pods.filter((one) => one?.spec).flatMap(restrictedFaults)).toEqual([]);
        }
        await rm(folder, { recursive: true });
      },
      300_000,
    );

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
