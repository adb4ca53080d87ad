/** A Redis of the test's own: on a unix socket in a folder of its own, both gone with the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { dieWithParent } from 'soundpost-base/launcher';

export interface TestRedis {
  /** `unix:///…` */
  readonly url: string;
  readonly socketPath: string;
  /** For SIGSTOP and SIGCONT: a server that hangs. */
  readonly pid: number;
  close(): Promise<void>;
}

/** @param settings over those of a test, such as `['--appendonly', 'yes']` */
export async function startTestRedis(settings: readonly string[] = []): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-redis-'));
  const socketPath = join(folder, 'redis.sock');
  const server = await spawnRedis([
    '--port',
    '0',
    '--unixsocket',
    socketPath,
    '--dir',
    folder,
    '--save',
    '',
    ...settings,
  ]);
  return {
    url: `unix://${socketPath}`,
    socketPath,
    pid: server.pid,
    async close() {
      await server.end('SIGTERM');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export interface RedisProcess {
  readonly pid: number;
  /** Resolves once it is gone; also when it was before. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/**
 * Starts redis-server with these arguments; it ends with this process. Resolves when it says that
 * it is ready.
 * @param ready what it says then
 * @param program another one, and what its command begins with
 */
export async function spawnRedis(
  settings: readonly string[],
  ready = /[Rr]eady to accept connections/,
  program: readonly string[] = ['redis-server'],
): Promise<RedisProcess> {
  const [launcher = '', ...prefix] = dieWithParent('KILL', process.env.PATH ?? '');
  const child: ChildProcess = spawn(launcher, [...prefix, ...program, ...settings, '--loglevel', 'notice'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await untilItSays(child, ready);
  child.stdout?.resume();
  return {
    pid: child.pid ?? 0,
    async end(signal) {
      child.kill(signal);
      await ended;
    },
  };
}

async function untilItSays({ stdout }: ChildProcess, ready: RegExp): Promise<void> {
  const said: string[] = [];
  if (stdout !== null) {
    for await (const line of createInterface({ input: stdout })) {
      said.push(line);
      if (ready.test(line)) {
        return;
      }
    }
  }
  throw new Error(`redis-server ended before it was ready:\n${said.join('\n')}`);
}
