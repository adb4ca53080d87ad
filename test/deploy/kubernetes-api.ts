/**
 * Kubernetes' API at its wire, as far as Helm asks it: discovery, and objects that are made, applied, listed, read and removed. It validates and starts
 * nothing; that the chart's objects are valid is what schemas.ts is for.
 */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Json } from 'soundpost-testing/client';
import { parse, stringify } from 'yaml';
import { isProtobuf, objectOfProtobuf } from './protobuf-object.ts';

/** Kind and plural by group and version; namespaced but for Namespace. */
const kinds: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  v1: {
    Namespace: 'namespaces',
    Secret: 'secrets',
    ConfigMap: 'configmaps',
    Service: 'services',
    ServiceAccount: 'serviceaccounts',
    PersistentVolumeClaim: 'persistentvolumeclaims',
    Pod: 'pods',
  },
  'apps/v1': { Deployment: 'deployments', StatefulSet: 'statefulsets', ReplicaSet: 'replicasets' },
  'policy/v1': { PodDisruptionBudget: 'poddisruptionbudgets' },
  'networking.k8s.io/v1': { NetworkPolicy: 'networkpolicies', Ingress: 'ingresses' },
  'autoscaling/v2': { HorizontalPodAutoscaler: 'horizontalpodautoscalers' },
};

export interface KubernetesApi {
  /** For Helm's KUBECONFIG. */
  readonly kubeconfig: string;
  /** The object, or undefined. @param path such as `secrets/soundpost` */
  get(namespace: string, path: string): Json;
  close(): Promise<void>;
}

/** @param folder where the kubeconfig is written; @param namespaces those that there are */
export async function startKubernetesApi(
  folder: string,
  namespaces: readonly string[],
): Promise<KubernetesApi> {
  const objects = new Map<string, Json>();
  for (const name of namespaces)
    objects.set(`/api/v1/namespaces/${name}`, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const server = createServer((request, response) => {
    answer(objects, request, response).catch((error: Error) => response.writeHead(500).end(error.message));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const kubeconfig = `${folder}/kubeconfig`;
  const { port } = server.address() as AddressInfo;
  await writeFile(kubeconfig, stringify(kubeconfigFor(`http://127.0.0.1:${port}`)));
  return {
    kubeconfig,
    get: (namespace, path) => objects.get(`/api/v1/namespaces/${namespace}/${path}`),
    close: () => close(server),
  };
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

function kubeconfigFor(server: string): Json {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server } }],
    users: [{ name: 'test', user: {} }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  };
}

async function answer(
  objects: Map<string, Json>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://kubernetes');
  const bytes = await buffer(request);
  const body = isProtobuf(bytes) ? objectOfProtobuf(bytes) : parse(bytes.toString());
  const [status, said] =
    discovery(pathname) ?? (await change(objects, request.method ?? '', pathname, searchParams, body));
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
}

function discovery(path: string): [number, Json] | undefined {
  if (path === '/version') return [200, { major: '1', minor: '34', gitVersion: 'v1.34.0' }];
  if (path === '/api') return [200, { kind: 'APIVersions', versions: ['v1'] }];
  if (path === '/apis') return [200, { kind: 'APIGroupList', apiVersion: 'v1', groups: groups() }];
  const version = path.replace(/^\/apis?\//, '');
  const known = kinds[version];
  if (known === undefined) return undefined;
  const resources = Object.entries(known).map(([kind, name]) => ({
    name,
    kind,
    singularName: kind.toLowerCase(),
    namespaced: kind !== 'Namespace',
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  }));
  return [200, { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: version, resources }];
}

function groups(): Json[] {
  return Object.keys(kinds)
    .filter((groupVersion) => groupVersion.includes('/'))
    .map((groupVersion) => {
      const [name, version] = groupVersion.split('/');
      const one = { groupVersion, version };
      return { name, versions: [one], preferredVersion: one };
    });
}

async function change(
  objects: Map<string, Json>,
  method: string,
  path: string,
  query: URLSearchParams,
  body: Json,
): Promise<[number, Json]> {
  // Such as /api/v1/namespaces/a/secrets/b, or without the last for all.
  const [, collection = ''] = /^(.*\/namespaces\/[^/]+\/[^/]+)(?:\/[^/]+)?$/.exec(path) ?? [];
  const isCollection = collection === path || path === '/api/v1/namespaces';
  const before = objects.get(path);
  if (method === 'GET' && isCollection) return [200, list(objects, path, query.get('labelSelector') ?? '')];
  if (method === 'POST') {
    const made = body;
    const place = `${path}/${made.metadata.name}`;
    if (objects.has(place)) return [409, failure('AlreadyExists', 409)];
    objects.set(place, made);
    return [201, made];
  }
  if (method === 'PUT' || (method === 'PATCH' && (before || query.has('fieldManager')))) {
    const { metadata, ...rest } = body;
    const changed = { ...before, ...rest, metadata: { ...before?.metadata, ...metadata } };
    objects.set(path, changed);
    return [before ? 200 : 201, changed];
  }
  if (before === undefined) return [404, failure('NotFound', 404)];
  if (method === 'DELETE') objects.delete(path);
  return [200, before];
}

function list(objects: ReadonlyMap<string, Json>, path: string, selector: string): Json {
  const wanted = selector.split(',').flatMap((term) => {
    const [name = '', value] = term.split('=');
    return value === undefined ? [] : [[name, value] as const];
  });
  const items = [...objects]
    .filter(([place]) => place.startsWith(`${path}/`))
    .map(([, object]) => object)
    .filter(({ metadata }) => wanted.every(([name, value]) => metadata.labels?.[name] === value));
  // Helm lists its releases, which are Secrets, and namespaces.
  return { kind: path.endsWith('/secrets') ? 'SecretList' : 'List', apiVersion: 'v1', metadata: {}, items };
}

const failure = (reason: string, code: number): Json => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  reason,
  code,
  message: reason,
});
