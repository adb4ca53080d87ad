/** The command line as somebody types it: in this process where only its answers count; a process of its own, its streams as pipes or as a terminal, where the process is what a test is about. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { Environment } from 'soundpost-kit/settings/environment';
import { inherited } from 'soundpost-testing/inherited';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll } from 'vitest';
import { run } from '../../src/cli/run.ts';

export const MAIN = join(import.meta.dirname, '../../src/main.ts');

export interface Ended {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  /** Both outputs so far; of a terminal there is one. */
  readonly output: () => string;
  says(pattern: RegExp): Promise<void>;
  /** Bytes into standard input: `\u0003` is Ctrl-C at a terminal. */
  type(text: string): void;
  signal(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

/** A folder of a test file's own, where commands are called and leave what they leave. */
export class Desk {
  readonly folder: string;
  /** TMPDIR of every command. */
  readonly temporary: string;
  environment: Readonly<Record<string, string>> = {};

  constructor(folder: string, temporary: string) {
    this.folder = folder;
    this.temporary = temporary;
  }

  /** How to leave the folder and environment that commands of this process run in, and how many do. */
  #leave = (): void => undefined;
  #running = 0;

  /**
   * In this process; commands of one environment may run at the same time.
   * @param input what is on standard input; none: it is empty
   */
  async soundpost(args: readonly string[], input?: Buffer): Promise<Ended> {
    const stdout = new Collected();
    const stderr = new Collected();
    if (this.#running === 0) this.#leave = enter(this.folder, this.#variables());
    this.#running += 1;
    try {
      const stdin = Readable.from(input === undefined ? [] : [input]);
      const code = await run(args, { stdin, stdout, stderr });
      return { code, stdout: stdout.bytes(), stderr: stderr.bytes().toString('utf8') };
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#leave();
    }
  }

  #variables(): NodeJS.ProcessEnv {
    return {
      HOME: this.folder,
      LANG: 'C.UTF-8',
      TMPDIR: this.temporary,
      DATA_DIR: join(this.folder, 'data'),
      ...inherited,
      ...this.environment,
    };
  }

  shell(script: string): Promise<Ended> {
    const soundpost = `soundpost() { ${quoted(process.execPath)} ${quoted(MAIN)} "$@"; }`;
    return this.start(['bash', '-c', `set -o pipefail; ${soundpost}; ${script}`], 'ignore').ended;
  }

  /** On a terminal of its own (script(1) of util-linux), `columns` wide. */
  terminal(
    args: readonly string[],
    columns = 70,
    environment: Readonly<Record<string, string>> = {},
  ): Running {
    const command = [process.execPath, MAIN, ...args].map(quoted).join(' ');
    return this.start(
      ['script', '-qefc', `stty cols ${columns} rows 24; exec ${command}`, '/dev/null'],
      'pipe',
      { TERM: 'xterm-256color', SHELL: '/bin/sh', ...environment },
    );
  }

  start(
    [file = '', ...args]: readonly string[],
    stdin: 'ignore' | 'pipe' = 'ignore',
    environment: Readonly<Record<string, string>> = {},
  ): Running & { readonly stdin: NodeJS.WritableStream | null } {
    const child = spawn(file, args, {
      cwd: this.folder,
      env: {
        PATH: process.env.PATH,
        ...this.#variables(),
        ...environment,
      },
      stdio: [stdin, 'pipe', 'pipe'],
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    // A command that ends before it has read everything is the test's to judge by its exit code.
    child.stdin?.on('error', () => undefined);
    const output = (): string => Buffer.concat([...stdout, ...stderr]).toString('utf8');
    let isClosed = false;
    const ended = once(child, 'close').then(() => {
      isClosed = true;
      return {
        code: child.exitCode,
        stdout: Buffer.concat(stdout),
        stderr: Buffer.concat(stderr).toString('utf8'),
      };
    });
    return {
      pid: child.pid ?? 0,
      stdin: child.stdin,
      output,
      says: async (pattern) => {
        await until(`${args.join(' ')} says ${pattern}`, () => {
          if (isClosed && !pattern.test(output())) {
            throw new Error(`it ended with ${child.exitCode} before it said ${pattern}:\n${output()}`);
          }
          return pattern.test(output());
        });
      },
      type: (text) => {
        child.stdin?.write(text);
      },
      signal: (signal) => {
        child.kill(signal);
      },
      ended,
    };
  }

  /** What lies in the folder, hidden files too. */
  async files(): Promise<string[]> {
    return (await readdir(this.folder)).sort();
  }

  /** What commands left of their temporary files. */
  leftovers(): Promise<string[]> {
    return readdir(this.temporary);
  }
}

export function useDesk(): () => Desk {
  let desk: Desk | undefined;
  beforeAll(async () => {
    desk = new Desk(
      await mkdtemp(join(tmpdir(), 'soundpost-desk-')),
      await mkdtemp(join(tmpdir(), 'soundpost-desk-tmp-')),
    );
  });
  afterAll(async () => {
    for (const folder of [desk?.folder, desk?.temporary]) {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    }
  });
  return () => {
    if (desk === undefined) throw new Error('there is a desk only while tests run');
    return desk;
  };
}

class Collected extends Writable {
  readonly #chunks: Buffer[] = [];
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** Has this process work in the folder, with these variables and none of the settings that it was started with; returns the way back. */
function enter(folder: string, variables: NodeJS.ProcessEnv): () => void {
  const before = { ...process.env };
  const place = process.cwd();
  process.chdir(folder);
  for (const name of Object.keys(Environment.shape)) delete process.env[name];
  Object.assign(process.env, variables);
  return () => {
    process.chdir(place);
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
