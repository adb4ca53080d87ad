/**
 * A whole service to break: a Redis, an API, a gateway and workers as real processes that are started again when they
 * die, and around it the world: a web server with videos, a receiver of webhooks, a recorder before the gateway.
 * It remembers every job that was accepted, so that `violations` (invariants.ts) can ask after each of them.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type Json } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { processesOver, signalIfThere } from 'soundpost-testing/processes';
import { type Environment, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { GatewayRecorder } from './gateway-recorder.ts';
import { HookReceiver } from './hook-receiver.ts';
import { oneHost } from './hosts.ts';
import { KillableRedis, type StandRedis } from './killable-redis.ts';
import { heldBytes } from './memory.ts';
import { Observer } from './observer.ts';
import { type ProcessOptions, ServiceProcesses } from './service-processes.ts';
import { makeSources } from './sources.ts';
import { type AcceptedJob, acceptedJob, requestOf, type Submission } from './submission.ts';
import type { Supervised } from './supervised.ts';

export type { AcceptedJob, Submission } from './submission.ts';

export const GATEWAY_KEY = 'the-gateways-own-key';

/** For a scenario in which no worker dies: on a busy machine a short lock runs out now and then, and what was begun is begun again. */
export const LONG_LOCKS = { JOB_LOCK_SECONDS: '30' };

export interface StandOptions extends ProcessOptions {
  /** What is to be done with the folder that becomes DATA_DIR, before anything is started over it. */
  readonly prepare?: (data: string) => Promise<void>;
  /** What the processes may reach besides the stand's own servers, each `host:port`. */
  readonly allow?: readonly string[];
  /** Makes the Redis over a folder of its own; default one server with an append-only file. */
  readonly redis?: (folder: string) => StandRedis;
  /** For every process, over the short settings of a stand. */
  readonly environment?: Environment;
}

interface World {
  readonly redis: StandRedis;
  readonly web: VideoServer;
  readonly hooks: HookReceiver;
  readonly gatewayCalls: GatewayRecorder;
}

export class Stand {
  readonly folder: string;
  readonly home: ServiceHome;
  readonly redis: StandRedis;
  readonly web: VideoServer;
  readonly hooks: HookReceiver;
  /** Between the workers and the gateway. */
  readonly gatewayCalls: GatewayRecorder;
  readonly observer: Observer;
  readonly accepted: AcceptedJob[] = [];
  /** What each process held after the warm-up, bytes, by its name; filled by `warmUp`. */
  readonly memoryLevels = new Map<string, number>();
  readonly #clients = new Map<string, Client>();
  readonly #service: ServiceProcesses;

  private constructor(folder: string, home: ServiceHome, world: World, options: StandOptions) {
    this.folder = folder;
    this.home = home;
    this.redis = world.redis;
    this.web = world.web;
    this.hooks = world.hooks;
    this.gatewayCalls = world.gatewayCalls;
    this.observer = new Observer(this);
    this.#service = new ServiceProcesses(home, options);
  }

  /** Resolves when everything is ready for requests. */
  static async start(options: StandOptions = {}): Promise<Stand> {
    const folder = await mkdtemp(join(tmpdir(), 'spf-'));
    for (const name of ['redis', 'videos', 'kills', 'data']) await mkdir(join(folder, name));
    await options.prepare?.(join(folder, 'data'));
    const { hosts } = options;
    const world = (hosts ?? oneHost).world;
    const redis =
      options.redis?.(join(folder, 'redis')) ??
      new KillableRedis(join(folder, 'redis'), hosts && { ...hosts.api, address: hosts.apiFromWorkers });
    const [web, hooks, gatewayCalls] = await Promise.all([
      serveVideos(join(folder, 'videos'), world),
      HookReceiver.start(world),
      GatewayRecorder.start(world),
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
      WEBHOOK_SCHEDULE_SECONDS: '0,1,2,3,4,6,8,11,15,20',
      SHUTDOWN_SECONDS: '2',
      WORKER_CONCURRENCY: '2',
      UNFINISHED_PER_KEY: '100000',
      ...(hosts === undefined ? {} : { HOST: '0.0.0.0' }),
      FAULT_KILLS: join(folder, 'kills'),
      ...options.environment,
    });
    const stand = new Stand(folder, home, { redis, web, hooks, gatewayCalls }, options);
    try {
      await stand.#service.start();
      gatewayCalls.target = stand.gatewayUrl;
      await stand.#admit(home.key);
    } catch (error) {
      await stand.close();
      throw error;
    }
    stand.observer.start();
    return stand;
  }

  /** Base address. */
  get apiUrl(): string {
    return this.#service.apiUrl;
  }

  /** Base address of the gateway itself, past the recorder. */
  get gatewayUrl(): string {
    return this.#service.gatewayUrl;
  }

  get api(): Supervised {
    return this.#service.api;
  }

  get gateway(): Supervised {
    return this.#service.gateway;
  }

  get workers(): Supervised[] {
    return this.#service.workers;
  }

  /** One more worker; it is not ready yet. */
  addWorker(): Supervised {
    return this.#service.addWorker();
  }

  get processes(): readonly Supervised[] {
    return this.#service.all;
  }

  /** DATA_DIR of all processes. */
  get data(): string {
    return join(this.folder, 'data');
  }

  /** With the stand's own key. */
  get client(): Client {
    return this.clientOf(this.home.key);
  }

  clientOf(key: string): Client {
    const client = this.#clients.get(key);
    if (client === undefined) throw new Error('the stand does not know this key');
    return client;
  }

  /** Makes another API key, with every scope and instance. */
  async newKey(name: string): Promise<string> {
    const command = [process.execPath, 'src/main.ts', 'keys', 'create', '--name', name, '--instances', '*'];
    const key = await this.home.run(command).says(/(sp_\w+)/);
    await this.#admit(key);
    return key;
  }

  async #admit(key: string): Promise<void> {
    const client = new Client(this.apiUrl, key);
    this.#clients.set(key, client);
    this.hooks.trust((await this.ask('/v1/webhooks/secret', key)).secret);
  }

  /** What the API tells, `data` of its answer. A busy machine lets it say first that it cannot. @param key default the stand's own */
  async ask(path: string, key = this.home.key): Promise<Json> {
    return until(`GET ${path} is answered`, async () => {
      const { status, body } = await this.clientOf(key).call('GET', path);
      return status !== 503 && body.data;
    });
  }

  /** Submits until the job is taken: what a busy machine lets the API answer 503 never runs. Throws at any other answer, or when there is none. */
  async submit(submission: Submission = {}): Promise<string> {
    const { jobId } = await until('the job is taken', async () => {
      const { status, body } = await this.trySubmit(submission);
      if (status !== 202 && status !== 503) throw new Error(`the job was not taken: ${JSON.stringify(body)}`);
      return status === 202 && body.data;
    });
    return jobId;
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
      body: JSON.stringify(requestOf(submission, this.web.url, this.hooks.url)),
    });
    const body: Json = await response.json();
    if (response.status === 202) this.accept(body.data.jobId, submission);
    return { status: response.status, body };
  }

  /** Notes a job that was accepted by another way than `submit`. */
  accept(jobId: string, submission: Submission = {}): void {
    if (this.accepted.some((job) => job.jobId === jobId)) return;
    this.accepted.push(acceptedJob(jobId, submission));
  }

  /** A job with everything, and then the memory of each process: the level that it must come back to. */
  async warmUp(): Promise<void> {
    const jobs = await Promise.all(
      this.workers.map(() => this.submit({ webhook: true, voice: true, output: { format: 'flac' } })),
    );
    await this.observer.atRest(jobs);
    for (const supervised of this.processes) {
      this.memoryLevels.set(supervised.name, await heldBytes(this, supervised));
    }
  }

  /** Ends everything that was started, and removes the folder. */
  async close(): Promise<void> {
    this.observer.stop();
    await Promise.all(this.processes.map((supervised) => supervised.release()));
    this.web.letGo();
    await this.redis.kill();
    await this.home.remove();
    // What a killed worker left behind has no parent of ours any more, but the stand's folder in its command.
    for (const { pid } of processesOver(this.folder)) signalIfThere(pid, 'SIGKILL');
    await Promise.all([this.hooks.close(), this.web.close(), this.gatewayCalls.close()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}
