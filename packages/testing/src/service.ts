/**
 * The service as an operator starts it: real processes over a folder of their own, on free ports.
 * Whatever a test starts is ended by its process id.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inherited } from './inherited.ts';
import { descendants, isAlive } from './processes.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../../..');
/**
 * With the flag that ships: in script/env.sh, in the image and in the first line of the package's
 * bin.
 */
export const soundpost = [process.execPath, '--max-semi-space-size=4', 'src/main.ts'];
/**
 * No speed is promised: a script brings what is missing first, and on a busy machine a process
 * takes long to start.
 */
const SAYS_WITHIN_MS = 60_000;

export type Environment = Readonly<Record<string, string>>;

export interface RunningProcess {
  readonly pid: number;
  /** Everything that was written to standard output and standard error so far. */
  readonly output: () => string;
  /** The first group of what the pattern finds in the output; waits until it is there. */
  says(pattern: RegExp): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** The exit code, once all of its output is there; null when a signal ended it. */
  readonly exited: Promise<number | null>;
}

/**
 * Runs a command of this project's; its output is kept and shown when the test fails in waiting for
 * it.
 */
export function startProcess(
  command: readonly string[],
  environment: Environment,
  cwd: string = ROOT,
): RunningProcess {
  const [file = '', ...args] = command;
  const child: ChildProcess = spawn(file, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, LANG: 'C.UTF-8', ...inherited, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  let hasEnded = false;
  const exited = once(child, 'exit').then(async () => {
    await whatWasWritten();
    hasEnded = true;
    return child.exitCode;
  });
  return {
    pid: child.pid ?? 0,
    output: () => output,
    async says(pattern) {
      const look = (): RegExpExecArray | undefined => {
        const match = pattern.exec(output);
        if (match === null && hasEnded) {
          throw new Error(`${command.join(' ')} ended before it said ${pattern}:\n${output}`);
        }
        return match ?? undefined;
      };
      const found = await until(`${command.join(' ')} says ${pattern}`, look, SAYS_WITHIN_MS);
      return found[1] ?? '';
    },
    signal: (signal) => {
      child.kill(signal);
    },
    exited,
  };
}

/**
 * The end of a process may be told before what it wrote last was read. Not `close` of its streams:
 * its children may hold them longer. The second turn of the loop reads what was there when it
 * ended.
 */
async function whatWasWritten(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** A folder in which a service has lived, and may live again. */
export class ServiceHome {
  readonly folder: string;
  readonly key = `sp_${randomBytes(4).toString('hex')}_${randomBytes(16).toString('hex')}`;
  readonly #environment: Environment;
  /** What has not ended yet: of what has, the number may be another process's by now. */
  readonly #running = new Set<RunningProcess>();
  readonly #ends: Promise<void>[] = [];
  readonly #pids = new Set<number>();

  constructor(folder: string, environment: Environment) {
    this.folder = folder;
    this.#environment = environment;
  }

  static async make(environment: Environment = {}): Promise<ServiceHome> {
    return new ServiceHome(await mkdtemp(join(tmpdir(), 'soundpost-service-')), environment);
  }

  /** Starts `serve`, `api`, `worker` or `gateway`. */
  start(command: string, environment: Environment = {}): RunningProcess {
    return this.run([...soundpost, command], environment);
  }

  run(command: readonly string[], environment: Environment = {}): RunningProcess {
    const started = startProcess(command, {
      DATA_DIR: join(this.folder, 'data'),
      API_PORT: '0',
      GATEWAY_PORT: '0',
      WORKER_PORT: '0',
      BOOTSTRAP_API_KEY: this.key,
      RATE_SUBMIT_PER_MINUTE: '10000',
      RATE_READ_PER_MINUTE: '100000',
      LOG_LEVEL: 'warn',
      ...this.#environment,
      ...environment,
    });
    this.#running.add(started);
    this.#ends.push(
      started.exited.then(() => {
        this.#running.delete(started);
        this.#pids.delete(started.pid);
      }),
    );
    return started;
  }

  /** Everything in one process, ready for requests. */
  async serve(environment: Environment = {}): Promise<Serving> {
    const server = this.start('serve', environment);
    const api = await server.says(/^API\s+(http\S+)/m);
    const gateway = await server.says(/^Gateway\s+(http\S+)/m);
    const inbox = await server.says(/^Inbox\s+(http\S+)/m);
    this.notePids();
    return { process: server, api, gateway, inbox };
  }

  /** Remembers what runs now, so that `remove` sees whether it is gone. */
  notePids(): number[] {
    const pids = [...this.#running].flatMap(({ pid }) => [pid, ...descendants(pid)]);
    for (const pid of pids) this.#pids.add(pid);
    return pids;
  }

  /** Ends what still runs, waits until nothing of it is left, and removes the folder. */
  async remove(): Promise<void> {
    this.notePids();
    for (const { pid, signal, exited } of [...this.#running].reverse()) {
      if (isAlive(pid)) signal('SIGKILL');
      await exited;
    }
    await Promise.all(this.#ends);
    const pids = [...this.#pids];
    await until('nothing that the service started is left', () => !pids.some(isAlive));
    await rm(this.folder, { recursive: true, force: true });
  }
}

export interface Serving {
  readonly process: RunningProcess;
  /** Base addresses. */
  readonly api: string;
  readonly gateway: string;
  /** One-time link to the inbox. */
  readonly inbox: string;
}
