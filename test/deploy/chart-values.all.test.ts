/** values.yaml, values.schema.json and the templates speak of the same values; what is wrong is refused before anything is installed. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { Environment, secretReaders } from 'soundpost-kit/settings/environment';
import type { Json } from 'soundpost-testing/client';
import { describe, expect, it } from 'vitest';
import { isMap, isPair, isScalar, type Pair, parseDocument, visit } from 'yaml';
import { chartFolder, defaultValues, render, template, valuesSchema } from './chart.ts';
import { valueSets } from './value-sets.ts';

const validate = new Ajv({ allErrors: true, allowUnionTypes: true, strictTypes: false }).compile(
  valuesSchema,
);

/** The schema's properties, without what takes any name: config, secret.values, labels. */
function pathsOfSchema(schema: Json, path: string[] = []): string[] {
  if (schema.properties === undefined || schema.additionalProperties !== false) return [path.join('.')];
  if (['resources', 'affinity'].includes(path.at(-1) ?? '')) return [path.join('.')];
  return Object.entries(schema.properties).flatMap(([name, one]) => pathsOfSchema(one, [...path, name]));
}

function pathsOfValues(values: Json, path: string[] = []): string[] {
  const open = ['annotations', 'resources', 'config', 'global', 'labels'].includes(path.at(-1) ?? '');
  const isObject = typeof values === 'object' && values !== null && !Array.isArray(values);
  if (!isObject || open || Object.keys(values).length === 0) return [path.join('.')];
  return Object.entries(values).flatMap(([name, one]) => pathsOfValues(one, [...path, name]));
}

/** Values by `path`, of which `worker.replicas` is one, set on a copy. */
function withValue(path: string, value: Json): Json {
  const values = structuredClone(defaultValues);
  const steps = path.split('.');
  const last = steps.pop() ?? '';
  steps.reduce((at: Json, step) => at[step], values)[last] = value;
  return values;
}

it('the default passes, and every set that the chart is rendered with', () => {
  expect(validate(defaultValues), JSON.stringify(validate.errors)).toBe(true);
  for (const [name, values] of Object.entries(valueSets))
    expect([name, validate(values), validate.errors]).toEqual([name, true, null]);
});

it('the schema and values.yaml name the same values', () => {
  const paths = pathsOfValues(defaultValues);
  expect(paths.length).toBeGreaterThan(60);
  expect(pathsOfSchema(valuesSchema).toSorted()).toEqual(paths.toSorted());
});

it('every value is explained in the line above it', () => {
  const document = parseDocument(readFileSync(join(chartFolder, 'values.yaml'), 'utf8'));
  const bare: string[] = [];
  visit(document, {
    Pair(_, pair: Pair, ancestors) {
      if (!isScalar(pair.key)) return undefined;
      const name = String(pair.key.value);
      const section = isMap(pair.value) && !pair.value.flow && !['annotations', 'resources'].includes(name);
      if (section) return undefined;
      // The comment above the first key of a map belongs to the map.
      const map = ancestors.findLast(isMap);
      const first = isPair(map?.items[0]) && map.items[0] === pair;
      const comment = pair.key.commentBefore ?? (first ? map?.commentBefore : undefined);
      if (!comment) bare.push(name);
      return visit.SKIP;
    },
  });
  expect(bare).toEqual([]);
});

it('the templates use every value, and none that there is not', () => {
  const text = globSync('templates/**/*.{yaml,tpl,txt}', { cwd: chartFolder })
    .map((file) => readFileSync(join(chartFolder, file), 'utf8'))
    .join('\n');
  const used = new Set(
    [...text.matchAll(/\.Values\.(\w+(?:\.\w+)*)/g)]
      .map(([, path = '']) => path)
      .filter((path) => path !== ''),
  );
  const paths = pathsOfValues(defaultValues);
  const known = new Set(
    paths.flatMap((path) => path.split('.').map((_, nth, all) => all.slice(0, nth + 1).join('.'))),
  );
  // config.OUTBOUND_PORTS: a key of an open map.
  expect([...used].filter((path) => !known.has(path) && !path.startsWith('config.'))).toEqual([]);
  // The last name is enough: `with .Values.storage` reads `.s3.url`.
  const unused = paths.filter((path) => !new RegExp(`\\.${path.split('.').at(-1)}\\b`).test(text));
  expect(unused).toEqual(['global']);
});

describe('the variables of the service', () => {
  const config: string[] = valuesSchema.properties.config.propertyNames.enum;
  const secret: string[] = valuesSchema.properties.secret.properties.values.propertyNames.enum;
  /** Fixed by the image and the ports of the chart, in the place of a Secret, or of the command line. */
  const fixed = [
    'API_PORT',
    'GATEWAY_PORT',
    'WORKER_PORT',
    'DATA_DIR',
    'SECRET_KEY_FILE',
    'SOUNDPOST_SERVER',
    'SOUNDPOST_API_KEY',
  ];

  it('each is a value of its own, one of config, or one of the Secret', { tags: 'helm' }, async () => {
    const rendered = await Promise.all(Object.values(valueSets).map((values) => render(values)));
    const set = new Set<string>();
    for (const { kind, metadata, data, spec } of rendered.flat()) {
      if (kind === 'ConfigMap' && !metadata.name.endsWith('-dashboard'))
        for (const name of Object.keys(data)) set.add(name);
      for (const { name } of spec?.template?.spec?.containers?.[0].env ?? []) set.add(name);
    }
    const all = new Set([...config, ...secret, ...set, ...fixed]);
    all.delete('REDIS_PASSWORD');
    expect([...all].toSorted()).toEqual(Object.keys(Environment.shape).toSorted());
  });

  it('what is a password is none of config, and each of the Secret is read by somebody', () => {
    expect(secret.filter((name) => name !== 'REDIS_PASSWORD').toSorted()).toEqual(
      Object.keys(secretReaders).toSorted(),
    );
    const words = /KEY|SECRET|TOKEN|PASSWORD|HEADERS|PROXY/;
    const harmless = [
      'REDIS_KEY_FILE',
      'UNFINISHED_PER_KEY',
      'UPLOADS_PER_KEY',
      'UPLOAD_BYTES_PER_KEY',
      'EVENT_STREAMS_PER_KEY',
    ];
    expect(config.filter((name) => words.test(name) && !harmless.includes(name))).toEqual([]);
  });
});

describe('refused by the schema', () => {
  it.each<[path: string, value: Json]>([
    ['replicas', 3],
    ['worker.replica', 3],
    ['redis.enable', false],
    ['redis.password', 'secret'],
    ['storage.s3.buckets', 'a'],
    ['ingress.tls', []],
    ['networkPolicy.extraEgress', [{ ports: [{ port: 6379 }] }]],
    ['networkPolicy.extraEgress', [{ to: [], ports: [{ port: 6379 }] }]],
    ['networkPolicy.except', ['10.0.0.1']],
    ['config', { LOG_LEVL: 'debug' }],
    ['config', { SECRET_KEY: 'x'.repeat(32) }],
    ['config', { PUBLIC_URL: 'https://soundpost.example' }],
    // YAML reads `CONSOLE: off` so.
    ['config', { CONSOLE: false }],
    ['secret.values', { LOG_LEVEL: 'debug' }],
    ['secret.values', { SECRET_KEY: 'short' }],
    ['secret.values', { REDIS_PASSWORD: 'a/b@c' }],
    ['secret.existingSecret', 'Not_A_Name'],
    ['redis.url', 'redis://user:password@redis.example:6379'],
    ['redis.url', 'redis.example:6379'],
    ['redis.maxMemory', '512Mi'],
    ['publicUrl', 'soundpost.example'],
    ['publicUrl', 'https://user:password@soundpost.example'],
    ['ingress.host', 'https://soundpost.example'],
    ['storage.kind', 'nfs'],
    ['storage.volume.accessMode', 'ReadOnlyMany'],
    ['storage.volume.size', '100'],
    ['storage.s3.url', 'https://my-bucket.s3.amazonaws.com'],
    ['sandbox.mode', 'none'],
    ['sandbox.userNamespace', 'true'],
    ['worker.replicas', 0],
    ['worker.replicas', '3'],
    ['worker.concurrency', 0.5],
    ['worker.autoscaling.kind', 'cpu'],
    ['worker.autoscaling.minReplicas', 0],
    ['worker.resources', { cpu: 2 }],
    ['gateway.replicas', 2],
    ['gateway.ports', [70_000]],
    ['image.pullPolicy', 'always'],
    ['image.tag', 'latest@sha256'],
    ['image.digest', 'sha256:1234'],
    ['api.autoscaling.kind', 'keda'],
    ['worker.extraEnv', [{ name: 'A-B', value: 'c' }]],
    ['worker.extraEnvFrom', [{}]],
    ['worker.affinity', { nodeAffinities: {} }],
    ['worker.topologySpreadConstraints', [{ topologyKey: 'zone' }]],
    ['httpRoute.requestTimeout', 0],
    ['podLabels', { team: 1 }],
    ['trustProxy', '1'],
    ['serviceAccount.annotations', { role: true }],
  ])('%s: %j', (path, value) => {
    expect(validate(withValue(path, value))).toBe(false);
  });

  it('Helm goes by it', { tags: 'helm' }, async () => {
    const { code, output } = await template({ ...valueSets.default, redis: { enable: false } });
    expect(code).toBe(1);
    expect(output).toContain("at '/redis': additional properties 'enable' not allowed");
  });
});

describe('refused with a reason', { tags: 'helm' }, () => {
  const { default: values } = valueSets;
  it.each<[values: Json, reason: string]>([
    [{ redis: { url: 'redis://a:6379', existingSecret: 'b' } }, 'both say where Redis is'],
    [{ redis: { enabled: false } }, 'nothing says where Redis is'],
    [{ redis: { url: 'redis://redis.example:6379' } }, 'networkPolicy.extraEgress'],
    [{ ingress: { enabled: true } }, 'ingress.host'],
    [
      {
        ingress: { enabled: true, host: 'a.example', gatewayHost: 'b.example' },
        gateway: { enabled: false },
      },
      'gateway.enabled=false',
    ],
    [{ httpRoute: { enabled: true, host: 'a.example' } }, 'httpRoute.parentRefs'],
    [{ api: { autoscaling: { kind: 'hpa', minReplicas: 11 } } }, 'api.autoscaling.minReplicas is more'],
    [{ storage: { kind: 's3' } }, 'storage.s3.url'],
    [{ worker: { autoscaling: { kind: 'hpa', minReplicas: 9, maxReplicas: 2 } } }, 'more than maxReplicas'],
    [{ secret: { ...values.secret, existingSecret: 'mine' } }, 'put them into secret.existingSecret'],
    [{ secret: {} }, 'no cluster is asked here'],
  ])('%j', async (more, reason) => {
    const { code, output } = await template({ ...values, ...more });
    expect(code).toBe(1);
    expect(output).toContain(reason);
  });

  it('a Kubernetes that is too old', async () => {
    const { code, output } = await template(values, '--kube-version', '1.29.0');
    expect(code).toBe(1);
    expect(output).toContain('kubeVersion: >=1.30.0-0');
    expect((await template(values, '--kube-version', '1.30.0')).code).toBe(0);
  });
});
