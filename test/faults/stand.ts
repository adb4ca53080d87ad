/**
 * A whole service to break: a Redis, an API, a gateway and workers as real processes that are started again when they
 * die, and around it the world: a web server with videos, a receiver of webhooks, a recorder before the gateway.
 * It remembers every job that was accepted, so that `violations` (invariants.ts) can ask after each of them.
 */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type Json } from '../client.ts';
import { ada } from '../end-to-end/inbox.ts';
import { type Environment, ServiceHome } from '../service.ts';
import { serveVideos, type VideoServer } from '../video-server.ts';
import { GatewayRecorder } from './gateway-recorder.ts';
import { HookReceiver } from './hook-receiver.ts';
import { KillableRedis } from './killable-redis.ts';
import { Observer } from './observer.ts';
import { makeSources, type SourceName, sourceSeconds } from './sources.ts';
import { Supervised } from './supervised.ts';

const COMPILED = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'faults');
const PRELOAD = join(import.meta.dirname, 'preload.ts');

export interface StandOptions {
  /** Default 1. */
  readonly workers?: number;
  /** What the processes may reach besides the stand's own servers, each `host:port`. */
  readonly allow?: readonly string[];
  /** For every process, over the short settings of a stand. */
  readonly environment?: Environment;
  readonly apiEnvironment?: Environment;
  readonly gatewayEnvironment?: Environment;
  readonly workerEnvironment?: Environment;
  /** Files that are loaded into each worker before the service: sabotage. */
  readonly workerPreloads?: readonly string[];
  /** The same for the gateway. */
  readonly gatewayPreloads?: readonly string[];
}

/** What to submit; what is left out is the simplest there is. */
export interface Submission {
  /** One of the stand's videos, or any URL. Default talk.mp4. */
  readonly source?: SourceName | (string & {});
  readonly output?: object;
  readonly options?: object;
  /** Whether the job asks for a webhook to `hooks`. */
  readonly webhook?: boolean;
  /** Whether the job asks for a voice message to ada. */
  readonly voice?: boolean;
  readonly idempotencyKey?: string;
  /** Whose job it is; default the stand's own. */
  readonly key?: string;
}

export interface AcceptedJob {
  readonly jobId: string;
  readonly submission: Submission;
  /** When the 202 was there, ms since the epoch. */
  readonly acceptedAtMs: number;
  /** Seconds of sound that the source has; undefined when the stand does not know. */
  readonly seconds: number | undefined;
}

/** When webhooks of a stand are tried, seconds. */
export const WEBHOOK_SCHEDULE = [0, 1, 2, 3, 4, 6, 8, 11, 15, 20];

export class Stand {
  readonly folder: string;
  readonly home: ServiceHome;
  readonly redis: KillableRedis;
  readonly web: VideoServer;
  readonly hooks: HookReceiver;
  /** Between the workers and the gateway. */
  readonly gatewayCalls: GatewayRecorder;
  readonly observer: Observer;
  readonly accepted: AcceptedJob[] = [];
  readonly keys = new Map<string, Client>();
  /** Resident memory by process name after the warm-up, bytes; filled by `warmUp`. */
  readonly memoryLevels = new Map<string, number>();
  readonly #options: StandOptions;
  #api: Supervised | undefined;
  #gateway: Supervised | undefined;
  readonly workers: Supervised[] = [];
  /** Base addresses. */
  apiUrl = '';
  gatewayUrl = '';

  private constructor(folder: string, home: ServiceHome, world: World, options: StandOptions) {
    this.folder = folder;
    this.home = home;
    this.redis = world.redis;
    this.web = world.web;
    this.hooks = world.hooks;
    this.gatewayCalls = world.gatewayCalls;
    this.observer = new Observer(this);
    this.#options = options;
  }

  /** Resolves when everything is ready for requests. */
  static async start(options: StandOptions = {}): Promise<Stand> {
    const folder = await mkdtemp(join(tmpdir(), 'spf-'));
    for (const name of ['redis', 'videos', 'kills']) await mkdir(join(folder, name));
    const redis = new KillableRedis(join(folder, 'redis'));
    const [web, hooks, gatewayCalls] = await Promise.all([
      serveVideos(join(folder, 'videos')),
      HookReceiver.start(),
      GatewayRecorder.start(),
      redis.start(),
      makeSources(join(folder, 'videos')),
    ]);
    const home = new ServiceHome(folder, {
      REDIS_URL: redis.url,
      SECRET_KEY: 'a secret that all processes of the stand share, 32 bytes or more',
      GATEWAY_API_KEY: GATEWAY_KEY,
      GATEWAY_URL: gatewayCalls.url,
      OUTBOUND_ALLOW: [web.allow, hooks.allow, ...(options.allow ?? [])].join(','),
      JOB_LOCK_SECONDS: '2',
      WEBHOOK_SCHEDULE_SECONDS: WEBHOOK_SCHEDULE.join(','),
      SHUTDOWN_SECONDS: '2',
      WORKER_CONCURRENCY: '2',
      UNFINISHED_PER_KEY: '100000',
      FAULT_KILLS: join(folder, 'kills'),
      // Halves what a start costs, and a stand starts many.
      NODE_COMPILE_CACHE: COMPILED,
      ...options.environment,
    });
    const stand = new Stand(folder, home, { redis, web, hooks, gatewayCalls }, options);
    try {
      await stand.#startService();
    } catch (error) {
      await stand.close();
      throw error;
    }
    return stand;
  }

  async #startService(): Promise<void> {
    const { apiEnvironment, gatewayEnvironment, workers = 1 } = this.#options;
    this.#api = new Supervised('api', /^API\s+(http\S+)/m, () =>
      this.#run('api', [], { API_PORT: portOf(this.apiUrl), ...apiEnvironment }),
    );
    this.apiUrl = await this.#api.ready();
    const addresses = { PUBLIC_URL: this.apiUrl, GATEWAY_EVENTS_URL: `${this.apiUrl}/hooks/gateway` };
    this.#gateway = new Supervised('gateway', /^Gateway\s+(http\S+)/m, () =>
      this.#run('gateway', this.#options.gatewayPreloads, {
        ...addresses,
        GATEWAY_PORT: portOf(this.gatewayUrl),
        ...gatewayEnvironment,
      }),
    );
    for (let number = 1; number <= workers; number++) this.addWorker(addresses);
    await Promise.all([
      ...this.workers.map((worker) => worker.ready()),
      this.#gateway.ready().then((url) => {
        this.gatewayUrl = url;
        this.gatewayCalls.target = url;
      }),
    ]);
    await this.admit(this.home.key);
    this.observer.start();
  }

  /** One more worker; it is not ready yet. */
  addWorker(
    addresses: Environment = {
      PUBLIC_URL: this.apiUrl,
      GATEWAY_EVENTS_URL: `${this.apiUrl}/hooks/gateway`,
    },
  ): Supervised {
    const { workerEnvironment, workerPreloads } = this.#options;
    const worker = new Supervised(`worker ${this.workers.length + 1}`, /^(Worker)/m, () =>
      this.#run('worker', workerPreloads, { ...addresses, ...workerEnvironment }),
    );
    this.workers.push(worker);
    return worker;
  }

  #run(command: string, preloads: readonly string[] = [], environment: Environment) {
    const imports = [...preloads, PRELOAD].flatMap((path) => ['--import', path]);
    return this.home.run([process.execPath, ...imports, 'src/main.ts', command], environment);
  }

  get api(): Supervised {
    if (this.#api === undefined) throw new Error('the stand has no API yet');
    return this.#api;
  }

  get gateway(): Supervised {
    if (this.#gateway === undefined) throw new Error('the stand has no gateway yet');
    return this.#gateway;
  }

  get processes(): Supervised[] {
    return [this.#api, this.#gateway, ...this.workers].filter((found) => found !== undefined);
  }

  /** DATA_DIR of all processes. */
  get data(): string {
    return join(this.folder, 'data');
  }

  get client(): Client {
    return this.clientOf(this.home.key);
  }

  clientOf(key: string): Client {
    const client = this.keys.get(key);
    if (client === undefined) throw new Error('the stand does not know this key');
    return client;
  }

  /** Makes another API key, with every scope and instance. */
  async newKey(name: string): Promise<string> {
    const command = [process.execPath, 'src/main.ts', 'keys', 'create', '--name', name, '--instances', '*'];
    const key = await this.home.run(command).says(/(sp_\w+)/);
    await this.admit(key);
    return key;
  }

  private async admit(key: string): Promise<void> {
    const client = new Client(this.apiUrl, key);
    this.keys.set(key, client);
    this.hooks.trust((await client.call('GET', '/v1/webhooks/secret')).body.data.secret);
  }

  /** The request that stands for a submission. */
  requestOf({ source = 'talk.mp4', output, options, webhook, voice }: Submission): object {
    return {
      source: { type: 'url', url: source in sourceSeconds ? this.web.url(source) : source },
      output: { format: 'mp3', ...output },
      options: {
        ...(webhook ? { webhook: this.hooks.url } : {}),
        ...(voice ? { voiceMessage: { instance: 'main', number: ada.number } } : {}),
        ...options,
      },
    };
  }

  /** Submits once. Throws when the answer is not 202, or when there is none. */
  async submit(submission: Submission = {}): Promise<string> {
    const answer = await this.trySubmit(submission);
    if (answer.status !== 202) throw new Error(`the job was not taken: ${JSON.stringify(answer.body)}`);
    return answer.body.data.jobId;
  }

  /** Submits once and remembers the job when it was accepted; answers whatever the API answered. */
  async trySubmit(submission: Submission = {}): Promise<{ status: number; body: Json }> {
    const { idempotencyKey, key = this.home.key } = submission;
    const response = await fetch(`${this.apiUrl}/v1/extract`, {
      method: 'POST',
      headers: {
        'X-API-Key': key,
        'Content-Type': 'application/json',
        ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
      },
      body: JSON.stringify(this.requestOf(submission)),
    });
    const body: Json = await response.json();
    if (response.status === 202) this.accept(body.data.jobId, submission);
    return { status: response.status, body };
  }

  /** Notes a job that was accepted by another way than `submit`. */
  accept(jobId: string, submission: Submission = {}): void {
    if (this.accepted.some((job) => job.jobId === jobId)) return;
    const { source = 'talk.mp4' } = submission;
    const known = Object.entries(sourceSeconds).find(([name]) => name === source);
    this.accepted.push({ jobId, submission, acceptedAtMs: Date.now(), seconds: known?.[1] });
  }

  /** A job with everything, and then the memory of each process: the level that it must come back to. */
  async warmUp(): Promise<void> {
    const jobs = await Promise.all(
      this.workers.map(() => this.submit({ webhook: true, voice: true, output: { format: 'flac' } })),
    );
    await this.observer.atRest(jobs);
    for (const { name, pid } of this.processes) this.memoryLevels.set(name, await residentBytes(pid));
  }

  /** Ends everything that was started, and removes the folder. */
  async close(): Promise<void> {
    this.observer.stop();
    await Promise.all(this.processes.map((process) => process.release()));
    this.web.letGo();
    await this.redis.kill();
    await this.home.remove();
    await Promise.all([this.hooks.close(), this.web.close(), this.gatewayCalls.close()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

const GATEWAY_KEY = 'the-gateways-own-key';

interface World {
  readonly redis: KillableRedis;
  readonly web: VideoServer;
  readonly hooks: HookReceiver;
  readonly gatewayCalls: GatewayRecorder;
}

/** Of a process that has no port yet any will do; one that is started again keeps its own. */
function portOf(url: string): string {
  return url === '' ? '0' : new URL(url).port;
}

export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024;
}
