/** Follows the README as a reader would, against a service of its own: other ports, a temporary folder, a fresh key. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { dieWithParent } from '../../src/launcher.ts';
import { projectFolder } from './markdown.ts';

/** The ports that the page names. The walk has others, so it replaces them in every command. */
const PAGE_PORTS = ['8080', '8081', '9000', '9001'] as const;

const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;

export class Walk implements AsyncDisposable {
  readonly folder: string;
  /** What the reader has set in the second terminal. */
  readonly variables: Record<string, string> = {};
  readonly #ports: Readonly<Record<string, string>>;
  readonly #children: ChildProcess[] = [];

  private constructor(folder: string, ports: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#ports = ports;
  }

  static async begin(): Promise<Walk> {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-walk-'));
    await mkdir(join(folder, 'here'));
    const ports = await Promise.all(PAGE_PORTS.map(async (port) => [port, await freePort()] as const));
    return new Walk(folder, Object.fromEntries(ports));
  }

  /** The same text with the walk's ports in place of the page's. */
  translated(command: string): string {
    return PAGE_PORTS.reduce(
      (all, port) => all.replaceAll(`:${port}`, `:${this.#ports[port]}`),
      command,
    ).replaceAll(/\b(900[01])(?= |$)/gm, (port) => this.#ports[port] ?? port);
  }

  /** Starts what `OUTBOUND_ALLOW=… ./script/server` starts, without asking the package managers again. */
  serve(block: string): Interface {
    const [, settings = ''] = /^((?:[A-Z_]+=\S+ )*)\.\/script\/server\n$/.exec(block) ?? [];
    if (settings === '') {
      throw new Error(`the page starts the service in a way that this test does not know: ${block}`);
    }
    const given = Object.fromEntries(
      this.translated(settings)
        .trim()
        .split(' ')
        .map((setting) => setting.split('=', 2) as [string, string]),
    );
    return this.#start([process.execPath, join(projectFolder, 'src/main.ts'), 'serve'], {
      ...given,
      DATA_DIR: join(this.folder, 'data'),
      API_PORT: this.#ports['8080'] ?? '',
      GATEWAY_PORT: this.#ports['8081'] ?? '',
      LOG_LEVEL: 'fatal',
    });
  }

  /** Starts a command of the page that stays; its lines come as they are written. */
  beside(block: string): Interface {
    const command = this.translated(block)
      .trim()
      .replace(/ &$/, '')
      .replace('docs/examples/', join(projectFolder, 'docs/examples/'));
    return this.#start(['bash', '-c', `exec ${command.replace(/^(\w+=\S+) (.*)$/, 'env $1 $2')} 2>&1`], {});
  }

  /** Runs a block to its end and answers what it printed. Rejects when a command in it fails. */
  async run(block: string): Promise<string> {
    const script = `set -euo pipefail\n${this.translated(block)}`;
    const child = spawn('bash', ['-c', script], {
      cwd: join(this.folder, 'here'),
      env: { ...this.#environment(), ...this.variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number]>,
    ]);
    if (code !== 0) {
      throw new Error(`a block of the page failed with ${code}:\n${block}${stdout}${stderr}`);
    }
    return stdout;
  }

  #start(command: readonly string[], settings: Readonly<Record<string, string>>): Interface {
    const [program = '', ...args] = [...dieWithParent('TERM', process.env.PATH ?? ''), ...command];
    const child = spawn(program, args, {
      cwd: join(this.folder, 'here'),
      env: { ...this.#environment(), ...settings },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    return createInterface({ input: child.stdout });
  }

  #environment(): Record<string, string | undefined> {
    return { PATH: path, HOME: this.folder, TMPDIR: process.env.TMPDIR, PYTHONUNBUFFERED: '1' };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) {
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGTERM');
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return String(port);
}
