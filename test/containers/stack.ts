/** The stack of docker-compose.yml as a project of its own, on free ports, and a client for it. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'soundpost-testing/client';
import { freePort } from 'soundpost-testing/ports';
import { docker, ROOT, uniqueName } from './engine.ts';

const run = promisify(execFile);

export class Stack {
  readonly project = uniqueName();
  readonly client: Client;
  /** Base addresses. */
  readonly api: string;
  readonly gateway: string;
  readonly gatewayKey = 'the-gateways-own-key';
  readonly #command: readonly string[];
  readonly #compose: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(
    compose: readonly string[],
    files: readonly string[],
    ports: { readonly api: number; readonly gateway: number },
    environment: Readonly<Record<string, string>>,
  ) {
    const key = `sp_${randomBytes(4).toString('hex')}_${randomBytes(16).toString('hex')}`;
    this.api = `http://127.0.0.1:${ports.api}`;
    this.gateway = `http://127.0.0.1:${ports.gateway}`;
    this.client = new Client(this.api, key);
    this.#command = compose;
    this.#compose = [
      ...compose,
      ...['-p', this.project],
      ...['docker-compose.yml', ...files].flatMap((file) => ['-f', file]),
    ];
    this.#environment = {
      SECRET_KEY: 'a secret that all containers share, of 32 bytes or more',
      BOOTSTRAP_API_KEY: key,
      API_ADDRESS: new URL(this.api).host,
      GATEWAY_ADDRESS: new URL(this.gateway).host,
      GATEWAY_API_KEY: this.gatewayKey,
      PUBLIC_URL: this.api,
      GATEWAY_PUBLIC_URL: this.gateway,
      ...environment,
    };
  }

  /** Nothing of it runs yet. */
  static async make(
    compose: readonly string[],
    files: readonly string[] = [],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Stack> {
    const [api, gateway] = await Promise.all([freePort(), freePort()]);
    return new Stack(compose, files, { api, gateway }, environment);
  }

  /** A Compose command; answers what it wrote to standard output. @throws Error with what it wrote to standard error */
  async compose(...args: readonly string[]): Promise<string> {
    const [file = '', ...rest] = [...this.#compose, ...args];
    const env = { ...process.env, ...this.#environment };
    return (await run(file, rest, { cwd: ROOT, env, maxBuffer: 2 ** 26 })).stdout.trim();
  }

  /** Commands of a page, word for word, in this folder: `docker compose` is this Compose, with this project. @throws Error with what failed */
  async follow(commands: string, folder: string): Promise<void> {
    const compose = `docker() { if [ "$1" = compose ]; then shift; command ${this.#command.join(' ')} "$@"; else command docker "$@"; fi; }`;
    const own = { COMPOSE_PROJECT_NAME: this.project, COMPOSE_FILE: join(ROOT, 'docker-compose.yml') };
    const env = { ...process.env, ...this.#environment, ...own };
    await run('bash', ['-c', `set -euo pipefail\n${compose}\n${commands}`], { cwd: folder, env });
  }

  /** Full ids of the containers of a service that run, or of all services. */
  async containers(service?: string): Promise<string[]> {
    const labels = [
      `label=com.docker.compose.project=${this.project}`,
      ...(service === undefined ? [] : [`label=com.docker.compose.service=${service}`]),
    ];
    const filters = labels.flatMap((label) => ['--filter', label]);
    return (await docker('ps', '--quiet', '--no-trunc', ...filters)).split('\n').filter((id) => id !== '');
  }

  async container(service: string): Promise<string> {
    const [id, ...others] = await this.containers(service);
    if (id === undefined || others.length > 0)
      throw new Error(`${service} has ${others.length} more containers than one`);
    return id;
  }

  /** What is left of the project on the engine, by kind. */
  async remains(): Promise<Record<string, string[]>> {
    const filter = ['--quiet', '--filter', `label=com.docker.compose.project=${this.project}`];
    const kinds = { containers: ['ps', '--all'], volumes: ['volume', 'ls'], networks: ['network', 'ls'] };
    const found = await Promise.all(
      Object.entries(kinds).map(async ([kind, command]) => {
        const lines = (await docker(...command, ...filter)).split('\n').filter((line) => line !== '');
        return [kind, lines] as const;
      }),
    );
    return Object.fromEntries(found);
  }

  async remove(): Promise<void> {
    await this.compose('down', '--volumes', '--timeout', '5');
  }
}
