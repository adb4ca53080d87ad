/**
 * Two hosts and the world, out of network namespaces: one for the API and Redis, one for workers and gateway, each with a link to this process, which is
 * the world, and a link between the two that can be cut. They share the file system, as hosts with a storage of their own would.
 */
import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { promisify } from 'node:util';
import type { Hosts } from '../faults/hosts.ts';

const run = promisify(execFile);

/** - `down`: the interface goes away, as when a cable is pulled; - `silent`: packets vanish on their way, and nobody is told. */
export type Cut = 'down' | 'silent';

/** Nobody has this one, so that what is sent there is dropped by who gets it. */
const NOBODY = '02:00:00:00:00:99';

/**
 * Of the network for measurements (RFC 2544 appendix C.2.2), so that no real one has it: 16 addresses for each process of the tests, of which two
 * run side by side.
 */
function addressOf(host: number): string {
  const number = (process.pid % 8192) * 16 + host;
  return `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
}

export class TwoHosts implements Hosts {
  readonly world: string;
  readonly api: Hosts['api'];
  readonly workers: Hosts['workers'];
  readonly apiFromWorkers: string;
  readonly #name = `sp${process.pid}${randomInt(100)}`;

  private constructor() {
    this.world = addressOf(5);
    this.api = { prefix: this.#inside('a'), address: addressOf(2) };
    this.workers = { prefix: this.#inside('b'), address: addressOf(6) };
    this.apiFromWorkers = addressOf(9);
  }

  static async make(): Promise<TwoHosts> {
    const hosts = new TwoHosts();
    try {
      await hosts.#make();
    } catch (error) {
      await hosts.remove();
      throw error;
    }
    return hosts;
  }

  #inside(host: 'a' | 'b'): string[] {
    return ['nsenter', `--net=/run/netns/${this.#name}${host}`, '--'];
  }

  async #make(): Promise<void> {
    const [a, b] = [`${this.#name}a`, `${this.#name}b`];
    for (const host of [a, b]) {
      await ip('netns', 'add', host);
      await ip('-n', host, 'link', 'set', 'lo', 'up');
      await ip('link', 'add', `${host}w`, 'type', 'veth', 'peer', 'name', 'world', 'netns', host);
      await ip('link', 'set', `${host}w`, 'up');
    }
    await ip('-n', a, 'link', 'add', 'other', 'type', 'veth', 'peer', 'name', 'other', 'netns', b);
    await ip('address', 'add', `${addressOf(1)}/30`, 'dev', `${a}w`);
    await ip('address', 'add', `${addressOf(5)}/30`, 'dev', `${b}w`);
    for (const [host, device, end] of [
      [a, 'world', 2],
      [b, 'world', 6],
      [a, 'other', 9],
      [b, 'other', 10],
    ] as const) {
      await ip('-n', host, 'address', 'add', `${addressOf(end)}/30`, 'dev', device);
      await ip('-n', host, 'link', 'set', device, 'up');
    }
  }

  /** Cuts the link between the two; each goes on to see the world. */
  async cut(how: Cut): Promise<void> {
    if (how === 'down') await ip('-n', `${this.#name}a`, 'link', 'set', 'other', 'down');
    else
      await this.#eachEnd((host, peer) => [
        '-n',
        host,
        'neighbour',
        'replace',
        peer,
        'lladdr',
        NOBODY,
        'nud',
        'permanent',
        'dev',
        'other',
      ]);
  }

  async mend(how: Cut): Promise<void> {
    if (how === 'down') await ip('-n', `${this.#name}a`, 'link', 'set', 'other', 'up');
    else await this.#eachEnd((host, peer) => ['-n', host, 'neighbour', 'del', peer, 'dev', 'other']);
  }

  async #eachEnd(command: (host: string, peer: string) => string[]): Promise<void> {
    await Promise.all([
      ip(...command(`${this.#name}a`, addressOf(10))),
      ip(...command(`${this.#name}b`, addressOf(9))),
    ]);
  }

  /** Ends both, with their links. What runs in them is to be ended before. */
  async remove(): Promise<void> {
    for (const host of [`${this.#name}a`, `${this.#name}b`]) {
      // A namespace goes later than it is told to, and would keep the address until then.
      await ip('link', 'del', `${host}w`).catch(() => undefined);
      await ip('netns', 'del', host).catch(() => undefined);
    }
  }
}

async function ip(...args: string[]): Promise<void> {
  await run('ip', args);
}

/** What this machine lacks, when that is why {@link TwoHosts.make} failed; undefined when the failure is one of ours. */
export function whyNoHosts(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (process.getuid?.() !== 0) return 'network namespaces take root';
  if (code === 'ENOENT') return 'network namespaces take iproute2, and there is no `ip` here';
  if (code === 'EPERM' || error.message.includes('Operation not permitted')) {
    return `no network namespaces, although root: ${error.message.trim().replaceAll(/\s+/g, ' ')}`;
  }
  return undefined;
}
