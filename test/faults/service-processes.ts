/** API, gateway and workers of a stand: real processes under supervision, on ports that they keep. */
import { fileURLToPath } from 'node:url';
import { freePorts } from 'soundpost-testing/ports';
import { type Environment, type ServiceHome, soundpost } from 'soundpost-testing/service';
import { type Hosts, oneHost } from './hosts.ts';
import { Supervised } from './supervised.ts';

const PRELOAD = fileURLToPath(new URL('./preload.ts', import.meta.url));

export interface ProcessOptions {
  /** Default 1. */
  readonly workers?: number;
  readonly apiEnvironment?: Environment;
  readonly gatewayEnvironment?: Environment;
  readonly workerEnvironment?: Environment;
  /** Files that are loaded into each worker before the service: sabotage. */
  readonly workerPreloads?: readonly string[];
  /** The same for the gateway. */
  readonly gatewayPreloads?: readonly string[];
  /** Where each of them runs; default: all of them here. */
  readonly hosts?: Hosts;
}

export class ServiceProcesses {
  readonly workers: Supervised[] = [];
  /** Base addresses. */
  apiUrl = '';
  gatewayUrl = '';
  readonly #home: ServiceHome;
  readonly #options: ProcessOptions;
  readonly #hosts: Hosts;
  #api: Supervised | undefined;
  #gateway: Supervised | undefined;

  constructor(home: ServiceHome, options: ProcessOptions) {
    this.#home = home;
    this.#options = options;
    this.#hosts = options.hosts ?? oneHost;
  }

  get api(): Supervised {
    if (this.#api === undefined) throw new Error('the stand has no API yet');
    return this.#api;
  }

  get gateway(): Supervised {
    if (this.#gateway === undefined) throw new Error('the stand has no gateway yet');
    return this.#gateway;
  }

  /** All that were started. */
  get all(): Supervised[] {
    return [this.#api, this.#gateway, ...this.workers].filter((found) => found !== undefined);
  }

  /** Resolves when all are ready. */
  async start(): Promise<void> {
    const { apiEnvironment, gatewayEnvironment, gatewayPreloads, workers = 1 } = this.#options;
    const [apiPort, gatewayPort] = await freePorts(2);
    this.#api = new Supervised('api', /^API\s+(http\S+)/m, () =>
      this.#run(this.#hosts.api.prefix, 'api', [], { API_PORT: String(apiPort), ...apiEnvironment }),
    );
    this.apiUrl = at(this.#hosts.api.address, await this.#api.ready());
    this.#gateway = new Supervised('gateway', /^Gateway\s+(http\S+)/m, () =>
      this.#run(this.#hosts.workers.prefix, 'gateway', gatewayPreloads, {
        ...this.#addresses(),
        GATEWAY_PORT: String(gatewayPort),
        ...gatewayEnvironment,
      }),
    );
    for (let number = 1; number <= workers; number++) this.addWorker();
    await Promise.all(this.workers.map((worker) => worker.ready()));
    this.gatewayUrl = at(this.#hosts.workers.address, await this.#gateway.ready());
  }

  /** One more worker; it is not ready yet. */
  addWorker(): Supervised {
    const { workerEnvironment, workerPreloads } = this.#options;
    const worker = new Supervised(`worker ${this.workers.length + 1}`, /^(Worker)/m, () =>
      this.#run(this.#hosts.workers.prefix, 'worker', workerPreloads, {
        ...this.#addresses(),
        ...workerEnvironment,
      }),
    );
    this.workers.push(worker);
    return worker;
  }

  #addresses(): Environment {
    return {
      PUBLIC_URL: this.apiUrl,
      GATEWAY_EVENTS_URL: `${at(this.#hosts.apiFromWorkers, this.apiUrl)}/hooks/gateway`,
    };
  }

  #run(
    prefix: readonly string[],
    command: string,
    preloads: readonly string[] = [],
    environment: Environment,
  ) {
    const imports = [...preloads, PRELOAD].flatMap((path) => ['--import', path]);
    return this.#home.run([...prefix, ...soundpost.toSpliced(1, 0, ...imports), command], environment);
  }
}

/** The same at another address: what a process prints is its own view. */
function at(address: string, url: string): string {
  return `http://${address}:${new URL(url).port}`;
}
