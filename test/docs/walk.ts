/** Follows a page as a reader would, against a service of its own: other ports, a temporary folder, a fresh key. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { dieWithParent } from 'soundpost-base/launcher';
import { freePort } from 'soundpost-testing/ports';
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
  /** Where the commands run. */
  #here: string;

  private constructor(folder: string, ports: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#here = join(folder, 'here');
    this.#ports = ports;
  }

  static async begin(): Promise<Walk> {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-walk-'));
    await mkdir(join(folder, 'here'));
    await symlink(join(projectFolder, 'examples'), join(folder, 'here/examples'));
    const ports = await Promise.all(
      PAGE_PORTS.map(async (port) => [port, String(await freePort())] as const),
    );
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
  serve(block: string, settings: Readonly<Record<string, string>> = {}): Interface {
    const [, written = ''] = /^((?:[A-Z_]+=\S+ )*)\.\/script\/server\n$/.exec(block) ?? [];
    if (written === '') {
      throw new Error(`the page starts the service in a way that this test does not know: ${block}`);
    }
    const given = Object.fromEntries(
      this.translated(written)
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
      ...settings,
    });
  }

  /** Starts a command of the page that stays; its lines come as they are written. */
  beside(block: string): Interface {
    const command = this.translated(block).trim().replace(/ &$/, '');
    const program = command.replace(/^((?:\w+=\S+ )+)(.*)$/s, 'env $1$2');
    return this.#start(['bash', '-c', `exec ${program} 2>&1`], this.variables);
  }

  /** Runs a block to its end and answers what it printed; what it assigns stays for the next one. Rejects when a command in it fails. */
  async run(block: string): Promise<string> {
    const assigned = [...block.matchAll(/^(?:export )?([A-Z_]+)=/gm)].map(([, name = '']) => name);
    const kept = join(this.folder, 'assigned');
    const keep = assigned.map((name) => `printf '%s\\0%s\\0' ${name} "\${${name}-}"`).join('; ');
    const script = `set -euo pipefail\n${this.translated(block)}\n{ ${keep === '' ? ':' : keep}; } >'${kept}'`;
    const printed = await this.#bash(script, block);
    const values = (await readFile(kept, 'utf8')).split('\0');
    for (let at = 0; at + 1 < values.length; at += 2) {
      this.variables[values[at] ?? ''] = values[at + 1] ?? '';
    }
    return printed;
  }

  /** Runs a line as somebody types it: answers all that it prints, whether it succeeds or not. */
  typed(line: string): Promise<string> {
    return this.#bash(`{ ${this.translated(line)}\n} 2>&1 || true`, line);
  }

  async #bash(script: string, block: string): Promise<string> {
    const child = spawn('bash', ['-c', script], {
      cwd: this.#here,
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
      cwd: this.#here,
      env: { ...this.#environment(), ...settings },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    return createInterface({ input: child.stdout });
  }

  #environment(): Record<string, string | undefined> {
    return { PATH: path, HOME: this.folder, TMPDIR: process.env.TMPDIR, PYTHONUNBUFFERED: '1' };
  }

  /** From here on commands run in this folder. */
  enter(folder: string): void {
    this.#here = folder;
  }

  /** Ends what was started since `count` others ran. */
  async endBeside(count = 0): Promise<void> {
    for (const child of this.#children.splice(count).toReversed()) {
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGTERM');
      await ended;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endBeside();
    await rm(this.folder, { recursive: true, force: true });
  }
}
