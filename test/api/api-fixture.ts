/**
 * The service as it runs in production, wired by the same code, but inside the test's process: API, worker and gateway on a
 * Redis, a folder and ports of the test's own. And the world outside: videos to fetch and webhooks to call.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scopes } from 'soundpost-contract/api-keys';
import { createLogger } from 'soundpost-kit/observe/logger';
import { parts as everyPart } from 'soundpost-kit/observe/metrics/table';
import { closeRedis } from 'soundpost-kit/redis/connection';
import type { Storage } from 'soundpost-kit/storage/storage';
import { StorageWatch } from 'soundpost-kit/storage/storage-watch';
import type { MediaTools } from 'soundpost-media/run';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { receivedBody } from 'soundpost-testing/received-body';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { type Dispatcher, request } from 'undici';
import { afterAll, beforeAll } from 'vitest';
import { startApi } from '../../src/api/start.ts';
import { runGateway } from '../../src/gateway/start.ts';
import type { ApiKey, ApiKeys } from '../../src/jobs/tenants/api-keys.ts';
import { type Config, loadConfig } from '../../src/process/config.ts';
import {
  checkStorage,
  openFoundation,
  openRedis,
  openStores,
  type Resources,
  toolWatch,
  withSecrets,
} from '../../src/process/resources.ts';
import { confinedTools } from '../../src/process/tools.ts';
import { startWorker as startWorkerProcess } from '../../src/worker/start.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads the fields that it expects, and fails where they are not
export type Json = any;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
  /** The bytes as JSON; undefined where they are none. */
  readonly body: Json;
}

export interface Ask {
  /** Default: a key that may do everything; null sends none. */
  readonly key?: string | null;
  readonly json?: unknown;
  readonly body?: string | Buffer | FormData;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Notification {
  readonly atMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly json: Json;
}

export interface Hook {
  readonly url: string;
  readonly received: readonly Notification[];
  /** Everything received, once it is at least so much. */
  got(count: number): Promise<readonly Notification[]>;
}

export interface HookAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

type Handler = (incoming: IncomingMessage, response: ServerResponse) => unknown;

/** A web server that the service may reach although it is on this machine. */
export class Outside {
  readonly #server: Server;
  readonly #handlers = new Map<string, Handler>();
  readonly #closing = new AbortController();
  /** Paths that were asked for, in order. */
  readonly requests: string[] = [];

  private constructor() {
    this.#server = createServer((incoming, response) => {
      const path = (incoming.url ?? '').split('?')[0] ?? '';
      this.requests.push(path);
      const handler = this.#handlers.get(path);
      if (handler === undefined) {
        response.writeHead(404).end();
        return;
      }
      handler(incoming, response);
    });
  }

  static async open(): Promise<Outside> {
    const outside = new Outside();
    outside.#server.listen(0, '127.0.0.1');
    await once(outside.#server, 'listening');
    return outside;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  on(path: string, handler: Handler): string {
    this.#handlers.set(path, handler);
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Serves a file under a name. */
  async file(name: string, file: string): Promise<string> {
    const bytes = await readFile(file);
    return this.on(`/${name}`, (_incoming, response) =>
      response.writeHead(200, { 'content-length': bytes.length }).end(bytes),
    );
  }

  /** A source that begins and then says nothing until it is let go. */
  async stalling(
    name: string,
    file: string,
  ): Promise<{ url: string; begun: () => boolean; letGo: () => void }> {
    const bytes = await readFile(file);
    const gate = Promise.withResolvers<void>();
    const path = `/${name}`;
    const url = this.on(path, async (_incoming, response) => {
      response.writeHead(200, { 'content-length': bytes.length }).write(bytes.subarray(0, 1000));
      await Promise.race([gate.promise, once(this.#closing.signal, 'abort')]);
      response.end(bytes.subarray(1000));
    });
    return { url, begun: () => this.requests.includes(path), letGo: () => gate.resolve() };
  }

  /** A receiver of webhooks. @param answer to the nth notification, from 1 */
  hook(name: string, answer: (nth: number) => HookAnswer = () => ({ status: 204 })): Hook {
    const received: Notification[] = [];
    const url = this.on(`/${name}`, async (incoming, response) => {
      const body = await receivedBody(incoming);
      if (body === undefined) return;
      const text = body.toString('utf8');
      const headers = Object.fromEntries(
        Object.entries(incoming.headers).map(([header, value]) => [header, String(value)]),
      );
      received.push({ atMs: Date.now(), headers, text, json: JSON.parse(text) });
      const { status, headers: answered = {} } = answer(received.length);
      response.writeHead(status, answered).end();
    });
    return {
      url,
      received,
      got: (count) => until(`${count} webhooks at ${name}`, () => received.length >= count && received),
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

export interface ServiceSetting {
  readonly environment?: Readonly<Record<string, string>>;
  /** What runs besides the API. Default: a worker. */
  readonly parts?: readonly ('worker' | 'gateway')[];
  /** Rules of OUTBOUND_ALLOW besides the one for `outside`. */
  readonly allow?: readonly string[];
  /** What names resolve to, in place of DNS; an empty list: there is never an answer. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** What is to be between the service and its storage. */
  readonly storage?: (real: Storage) => Storage;
  /** Takes what the API and the gateway log, line by line; LOG_LEVEL says how much that is. */
  readonly log?: (line: string) => void;
}

/** The root of all secrets of the service. */
export const SECRET_KEY = 'the root secret of these tests, 32 bytes or more';
export const GATEWAY_API_KEY = 'gateway-key-of-these-tests';

export class TestService {
  readonly url: string;
  readonly gatewayUrl: string;
  /** A key that may do everything. */
  readonly key: string;
  readonly outside: Outside;
  readonly redis: TestRedis;
  readonly dataDir: string;
  readonly #keys: ApiKeys;
  readonly #startWorker: () => Promise<void>;
  readonly #stops: (() => Promise<unknown>)[];

  private constructor(made: {
    url: string;
    gatewayUrl: string;
    key: string;
    outside: Outside;
    redis: TestRedis;
    dataDir: string;
    keys: ApiKeys;
    startWorker: () => Promise<void>;
    stops: (() => Promise<unknown>)[];
  }) {
    this.url = made.url;
    this.gatewayUrl = made.gatewayUrl;
    this.key = made.key;
    this.outside = made.outside;
    this.redis = made.redis;
    this.dataDir = made.dataDir;
    this.#keys = made.keys;
    this.#startWorker = made.startWorker;
    this.#stops = made.stops;
  }

  static async start(setting: ServiceSetting = {}): Promise<TestService> {
    const { environment = {}, parts = ['worker'], allow = [], names, storage, log } = setting;
    const dataDir = await mkdtemp(join(tmpdir(), 'soundpost-api-'));
    const redis = await startTestRedis();
    const outside = await Outside.open();
    const config = loadConfig({
      API_PORT: '0',
      GATEWAY_PORT: '0',
      WORKER_PORT: '0',
      DATA_DIR: dataDir,
      REDIS_URL: redis.url,
      SECRET_KEY,
      GATEWAY_API_KEY,
      OUTBOUND_ALLOW: [`127.0.0.1:${outside.port}`, ...allow].join(','),
      RATE_SUBMIT_PER_MINUTE: '100000',
      RATE_READ_PER_MINUTE: '1000000',
      UNFINISHED_PER_KEY: '100000',
      // On a busy machine Redis and the storage may be late; what happens then is for tests about it.
      REDIS_DEADLINE_SECONDS: '30',
      STORAGE_DEADLINE_SECONDS: '60',
      LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
      ...environment,
    });
    const foundation = await openFoundation(config, everyPart);
    const connection = openRedis(foundation);
    const opened = await withSecrets(foundation, connection);
    const resources: Resources = {
      ...opened,
      ...(names === undefined ? {} : { outbound: outboundOf(config, opened, names) }),
      ...(storage === undefined ? {} : watched(storage(opened.storage), config, opened)),
      ...(log === undefined ? {} : { logger: createLogger(config.LOG_LEVEL, { write: log }) }),
      tools: async () => ({
        ...(await toolsOnce(config, opened)),
        watch: toolWatch(opened.metrics.observer, opened.traces.tracing),
      }),
    };
    await checkStorage(resources);
    const stores = openStores(resources, connection);
    // As src/cli/serve.ts does.
    void resources.probes.ask('link');
    const stops: (() => Promise<unknown>)[] = [
      () => rm(dataDir, { recursive: true, force: true }),
      () => outside.close(),
      () => redis.close(),
      () => resources.close(),
      () => closeRedis(connection),
      async () => stores.close(),
    ];
    const api = await startApi(resources, stores);
    stops.push(() => api.close(0));
    const ports: { api: number; gateway?: number } = { api: api.port };
    if (parts.includes('gateway')) {
      const gateway = await runGateway(resources, api.port);
      stops.push(() => gateway.close());
      ports.gateway = gateway.port;
    }
    const startWorker = async (): Promise<void> => {
      const worker = await startWorkerProcess(resources, stores, ports);
      stops.push(() => worker.close(0));
    };
    if (parts.includes('worker')) {
      await startWorker();
    }
    return new TestService({
      url: `http://127.0.0.1:${api.port}`,
      gatewayUrl: `http://127.0.0.1:${ports.gateway ?? 0}`,
      key: await stores.keys.create({ name: 'everything', scopes, instances: ['*'] }),
      outside,
      redis,
      dataDir,
      keys: stores.keys,
      startWorker,
      stops,
    });
  }

  /** A key of a tenant of its own. */
  newKey(wanted: Partial<Pick<ApiKey, 'name' | 'scopes' | 'instances'>> = {}): Promise<string> {
    return this.#keys.create({ name: 'test', scopes, instances: ['*'], ...wanted });
  }

  async revokeKey(key: string): Promise<void> {
    await this.#keys.revoke(key.split('_')[1] ?? '');
  }

  async pauseKey(key: string): Promise<void> {
    await this.#keys.pause(key.split('_')[1] ?? '');
  }

  /** One more worker. */
  startWorker(): Promise<void> {
    return this.#startWorker();
  }

  /** @param path absolute, or a path of the API */
  async call(method: string, path: string, ask: Ask = {}): Promise<Answer> {
    const { key = this.key, json, body, headers = {} } = ask;
    const sent = await encoded(json === undefined ? body : JSON.stringify(json));
    const answer = await request(path.startsWith('http') ? path : `${this.url}${path}`, {
      method: method as 'GET',
      headers: {
        ...(key === null ? {} : { 'x-api-key': key }),
        ...(json === undefined ? sent.headers : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: sent.body,
      // A connection of its own: see packages/testing/src/http.ts.
      reset: true,
    });
    const bytes = await bytesOf(path, answer);
    return {
      status: answer.statusCode,
      headers: Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
      ),
      bytes,
      body: parsed(bytes),
    };
  }

  /** A request to the gateway, with its own key. */
  gateway(method: string, path: string, json?: unknown): Promise<Answer> {
    const headers = { apikey: GATEWAY_API_KEY };
    return this.call(method, `${this.gatewayUrl}${path}`, { key: null, headers, json });
  }

  /** Submits one job and answers its id. */
  async submit(job: object, ask: Ask = {}): Promise<string> {
    const { status, body } = await this.call('POST', '/v1/extract', { ...ask, json: job });
    if (status !== 202) {
      throw new Error(`the job was not taken: ${status} ${JSON.stringify(body)}`);
    }
    return body.data.jobId;
  }

  /** The job as GET /v1/jobs gives it. */
  async job(jobId: string, ask: Ask = {}): Promise<Json> {
    return (await this.call('GET', `/v1/jobs/${jobId}`, ask)).body.data;
  }

  /** The job once it is in one of the states. */
  reaches(jobId: string, ...states: readonly string[]): Promise<Json> {
    return until(`${jobId} is ${states.join(' or ')}`, async () => {
      const job = await this.job(jobId);
      return states.includes(job.status) && job;
    });
  }

  /** The job once it has ended. */
  ended(jobId: string, ask: Ask = {}): Promise<Json> {
    return until(`${jobId} has ended`, async () => {
      const job = await this.job(jobId, ask);
      return ['completed', 'failed'].includes(job.status) && job;
    });
  }

  /** Submits one job and waits for its end. */
  async run(job: object, ask: Ask = {}, timeoutMs?: number): Promise<Json> {
    const jobId = await this.submit(job, ask);
    return until(
      `${jobId} has ended`,
      async () => {
        const now = await this.job(jobId, ask.key === undefined ? {} : { key: ask.key });
        return ['completed', 'failed'].includes(now.status) && now;
      },
      timeoutMs,
    );
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.reverse()) {
      await stop();
    }
  }
}

const confined = new Map<string, Promise<MediaTools>>();

/** The tools as the configuration has them. How they are confined is found out by running both, which once in a process is enough. */
function toolsOnce(config: Config, { logger }: Resources): Promise<MediaTools> {
  const asked = JSON.stringify([config.SANDBOX, config.FFMPEG_PATH]);
  const known = confined.get(asked) ?? confinedTools(config, logger);
  confined.set(asked, known);
  return known;
}

/** A storage with a watch of its own, in place of the one that was opened. */
function watched(
  storage: Storage,
  { STORAGE_DEADLINE_SECONDS }: Config,
  { probes }: Resources,
): Pick<Resources, 'storage' | 'storageWatch'> {
  const deadlineMs = STORAGE_DEADLINE_SECONDS * 1000;
  return { storage, storageWatch: new StorageWatch({ storage, deadlineMs, probes }) };
}

/** The way outside as the service opens it, but with names from a table. */
function outboundOf(
  config: Config,
  { logger }: Resources,
  names: NonNullable<ServiceSetting['names']>,
): Outbound {
  return createOutbound({
    allow: parseAllowRules(config.OUTBOUND_ALLOW),
    ports: config.OUTBOUND_PORTS,
    logger,
    userAgent: 'Soundpost',
    async resolve(name, signal) {
      const addresses = names[name];
      if (addresses === undefined) {
        throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
      }
      if (addresses.length === 0) {
        await once(signal, 'abort');
      }
      return addresses;
    },
  });
}

/** Of the stream that has no end its first event. */
async function bytesOf(path: string, { statusCode, body }: Dispatcher.ResponseData): Promise<Buffer> {
  if (!path.endsWith('/v1/events') || statusCode !== 200) return Buffer.from(await body.arrayBuffer());
  for await (const first of body) return first;
  return Buffer.alloc(0);
}

async function encoded(
  body: Ask['body'],
): Promise<{ body: string | Buffer | null; headers: Record<string, string> }> {
  if (!(body instanceof FormData)) {
    return { body: body ?? null, headers: {} };
  }
  const form = new Response(body);
  return {
    body: Buffer.from(await form.arrayBuffer()),
    headers: { 'content-type': form.headers.get('content-type') ?? '' },
  };
}

function parsed(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** A service for the tests of a file or a `describe`; it exists while they run. */
export function useService(setting: ServiceSetting = {}): () => TestService {
  let service: TestService | undefined;
  beforeAll(async () => {
    service = await TestService.start(setting);
  });
  afterAll(async () => {
    await service?.close();
  });
  return () => {
    if (service === undefined) {
      throw new Error('there is a service only while tests run');
    }
    return service;
  };
}

const TONE = 'aevalsrc=0.3*sin(880*PI*t)|0.3*sin(660*PI*t):s=48000';
const PICTURE = ['-f', 'lavfi', '-i', 'color=c=teal:s=32x32:r=5'];
const sound = (seconds: number, graph = TONE): string[] => [
  '-f',
  'lavfi',
  '-t',
  String(seconds),
  '-i',
  graph,
];
const MPEG4 = ['-c:v', 'mpeg4', '-shortest'];

const recipes = {
  /** A second of a tone in stereo. */
  'tone.mp4': [...PICTURE, ...sound(1), ...MPEG4, '-c:a', 'aac', '-b:a', '128k'],
  /** Two languages, the second one the default. */
  'languages.mkv': [
    ...[...PICTURE, ...sound(1), ...sound(1, 'aevalsrc=0.3*sin(440*PI*t):s=44100')],
    ...['-map', '0:v', '-map', '1:a', '-map', '2:a', ...MPEG4, '-c:a:0', 'aac', '-c:a:1', 'libmp3lame'],
    ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=deu'],
    ...['-disposition:a:0', '0', '-disposition:a:1', 'default'],
  ],
  'silent.mp4': [...PICTURE, '-t', '1', '-c:v', 'mpeg4'],
  /** So much sound that its steps can be watched. */
  'long.wav': [...sound(300, 'anoisesrc=a=0.2:r=8000'), '-c:a', 'pcm_s16le'],
  /** As long as three voice notes. */
  'talk.m4a': [...sound(480, 'anoisesrc=a=0.2:r=16000:c=pink:seed=1'), '-c:a', 'aac', '-b:a', '48k'],
} as const;

/** Paths of short media, for reading only. */
export function useClips<Name extends keyof typeof recipes>(...names: Name[]): (name: Name) => string {
  const files = new Map<Name, string>();
  beforeAll(async () => {
    for (const name of names) files.set(name, await cachedMedia(name, recipes[name]));
  });
  return (name) => files.get(name) ?? '';
}
