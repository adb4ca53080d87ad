/** A Redis of the test's own: on a unix socket in a folder of its own, both gone with the test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { dieWithParent } from '../src/launcher.ts';

export interface TestRedis {
  /** `unix:///…` */
  readonly url: string;
  readonly socketPath: string;
  /** For SIGSTOP and SIGCONT: a server that hangs. */
  readonly pid: number;
  close(): Promise<void>;
}

export async function startTestRedis(): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-redis-'));
  const socketPath = join(folder, 'redis.sock');
  const [launcher = '', ...prefix] = dieWithParent('KILL', process.env.PATH ?? '');
  const settings = [
    '--port',
    '0',
    '--unixsocket',
    socketPath,
    '--dir',
    folder,
    '--save',
    '',
    '--loglevel',
    'notice',
  ];
  const child = spawn(launcher, [...prefix, 'redis-server', ...settings], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const ready = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.includes('Ready to accept connections') || line.includes('ready to accept connections')) {
        return;
      }
    }
    throw new Error('redis-server ended before it was ready');
  })();
  await ready;
  child.stdout.resume();
  return {
    url: `unix://${socketPath}`,
    socketPath,
    pid: child.pid ?? 0,
    async close() {
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
