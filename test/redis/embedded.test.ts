/** The Redis that `serve` brings along: what it keeps, whom it outlives, and that a folder has one of it. */
import { type ChildProcess, execSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { dieWithParent } from 'soundpost-base/launcher';
import { connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { runningEmbeddedRedis, startEmbeddedRedis } from 'soundpost-kit/redis/embedded';
import { descendants, isAlive, programOf, startedFromNow } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { logger } from '../jobs/queue-fixture.ts';

const launchers = {
  setpriv: ['setpriv', '--pdeathsig', 'TERM', '--'],
  // What a machine without setpriv gets.
  'the shell': dieWithParent('TERM', ''),
} as const;

let folder = '';
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-embedded-'));
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await rm(folder, { recursive: true, force: true });
});

async function start(
  path = join(folder, 'redis'),
  launcher: readonly string[] = dieWithParent('TERM', process.env.PATH ?? ''),
) {
  const redis = await startEmbeddedRedis({ folder: path, launcher });
  closing.push(() => redis.close());
  return redis;
}

/** The same in a process of its own. */
async function startProcess(
  launcher: readonly string[] = launchers.setpriv,
): Promise<{ child: ChildProcess; url: string; servers: number[] }> {
  const script = fileURLToPath(new URL('./embedded-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, join(folder, 'redis'), ...launcher], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  closing.push(async () => {
    child.kill('SIGKILL');
    await until('redis-server has ended', () => !servers.some(isAlive));
  });
  const servers: number[] = [];
  const [url] = await once(child.stdout, 'data');
  servers.push(...descendants(child.pid ?? 0));
  return { child, url: String(url).trim(), servers };
}

/** Of a role that waits: a disk that is busy keeps a Redis that writes everything down from answering. */
function connect(url: string): Redis {
  const redis = connectRedis({ url, role: 'worker', logger });
  closing.push(async () => redis.disconnect());
  return redis;
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids.filter(isAlive)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // ESRCH: it went with the one before.
    }
  }
}

async function exited(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

describe('the embedded Redis', () => {
  it('writes everything down and throws nothing away', async () => {
    const redis = connect((await start()).url);
    const settings = await Promise.all(
      ['appendonly', 'appendfsync', 'maxmemory-policy', 'save', 'port', 'unixsocketperm'].map((name) =>
        redis.config('GET', name),
      ),
    );
    expect(Object.fromEntries(settings as [string, string][])).toEqual({
      appendonly: 'yes',
      appendfsync: 'everysec',
      'maxmemory-policy': 'noeviction',
      save: '',
      port: '0',
      unixsocketperm: '700',
    });
  });

  it('keeps what was written when everything is killed', async () => {
    const first = await startProcess();
    const before = connect(first.url);
    await before.set('job', 'accepted');
    killAll([first.child.pid ?? 0, ...first.servers]);
    await until('everything has ended', () => !first.servers.some(isAlive));
    expect(await connect((await start()).url).get('job')).toBe('accepted');
  });

  it.each(Object.entries(launchers))(
    'ends when its parent is killed, started by %s',
    async (_name, launcher) => {
      const { child, servers } = await startProcess(launcher);
      expect(servers.map(programOf)).toContain('redis-server');
      child.kill('SIGKILL');
      await until('no process is left', () => !servers.some(isAlive));
    },
  );

  it('is ended by close', async () => {
    const { child, servers } = await startProcess();
    child.kill('SIGTERM');
    expect(await exited(child)).toBe(0);
    await until('no process is left', () => !servers.some(isAlive));
    expect(existsSync(join(folder, 'redis', 'redis.sock'))).toBe(false);
  });

  it('is not had twice over one folder', async () => {
    const { url, servers } = await startProcess();
    const redis = connect(url);
    await redis.set('job', 'accepted');
    await expect(
      startEmbeddedRedis({ folder: join(folder, 'redis'), launcher: launchers.setpriv }),
    ).rejects.toThrow(
      `another Soundpost uses ${join(folder, 'redis')}: stop it, choose another DATA_DIR, or set REDIS_URL`,
    );
    expect(servers.filter(isAlive)).toEqual(servers);
    expect(await redis.get('job')).toBe('accepted');
    expect(await runningEmbeddedRedis(join(folder, 'redis'))).toBe(url);
  });

  it('waits for a predecessor that is just ending', async () => {
    const first = await startProcess();
    await connect(first.url).set('job', 'accepted');
    first.child.kill('SIGKILL');
    expect(await connect((await start()).url).get('job')).toBe('accepted');
  });

  it('starts over a socket and an address that a crash has left behind', async () => {
    const first = await startProcess();
    const [server = 0] = first.servers;
    process.kill(server, 'SIGKILL');
    first.child.kill('SIGKILL');
    await until('both have ended', () => !isAlive(server));
    expect(readdirSync(join(folder, 'redis'))).toEqual(expect.arrayContaining(['redis.sock', 'socket-path']));
    expect(await runningEmbeddedRedis(join(folder, 'redis'))).toBeUndefined();
    const { url } = await start();
    expect(await connect(url).ping()).toBe('PONG');
    expect(await runningEmbeddedRedis(join(folder, 'redis'))).toBe(url);
  });

  it('has its socket elsewhere where the path of the folder is too long for one', async () => {
    const deep = join(folder, 'd'.repeat(120), 'redis');
    const redis = await start(deep);
    const socket = redis.url.slice('unix://'.length);
    expect(Buffer.byteLength(join(deep, 'redis.sock'))).toBeGreaterThan(107);
    expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(107);
    expect(await runningEmbeddedRedis(deep)).toBe(redis.url);
    const client = connect(redis.url);
    expect((await client.config('GET', 'dir')) as string[]).toContain(deep);
    client.disconnect();
    await redis.close();
    expect(existsSync(dirname(socket))).toBe(false);
  });

  it('uses the folder as long as the path just fits', async () => {
    const fitting = join(folder, 'd'.repeat(107 - Buffer.byteLength(join(folder, '', 'redis.sock')) - 1));
    const { url } = await start(fitting);
    expect(url).toBe(`unix://${join(fitting, 'redis.sock')}`);
    expect(Buffer.byteLength(join(fitting, 'redis.sock'))).toBe(107);
  });

  it('says when it has ended by itself', async () => {
    const started = startedFromNow();
    const redis = await start();
    const [pid = 0] = started().filter((child) => programOf(child) === 'redis-server');
    process.kill(pid, 'SIGKILL');
    expect(await redis.died).toMatch(/^redis-server ended with SIGKILL/);
  });

  it('that cannot read its file says so in its own words, with the command that repairs it', async () => {
    const first = await start();
    const redis = connect(first.url);
    for (let index = 0; index < 20; index += 1) await redis.set(`key ${index}`, 'x'.repeat(100));
    redis.disconnect();
    await first.close();
    const files = join(folder, 'redis', 'appendonlydir');
    const name = readdirSync(files).find((one) => one.endsWith('.incr.aof')) ?? '';
    const written = await readFile(join(files, name));
    const cut = Buffer.concat([written.subarray(0, 1000), written.subarray(1050)]);
    await writeFile(join(files, name), cut);
    const said = String(await start().catch((error: Error) => error));
    expect(said).toMatch(
      /did not start: redis-server ended with code 1: Bad file format reading the append only/,
    );
    expect(said).not.toMatch(/WARNING|oO0/);
    const [, command = ''] = /: (redis-check-aof --fix \S+);/.exec(said) ?? [];
    expect(command).toContain(files);
    execSync(`echo y | ${command}`);
    expect(await connect((await start()).url).get('key 1')).toBe('x'.repeat(100));
  });

  it('says what is missing when there is no redis-server', async () => {
    const launcher = ['/usr/bin/env', '-i', 'PATH=/nonexistent'];
    await expect(startEmbeddedRedis({ folder: join(folder, 'redis'), launcher })).rejects.toThrow(
      /^the embedded Redis did not start: .*redis-server/s,
    );
    // Nobody goes on asking the one that failed: a retry is due every 20 ms.
    const socket = join(folder, 'redis', 'redis.sock');
    const visits: unknown[] = [];
    const server = createServer((visitor) => visits.push(visitor.destroy())).listen(socket);
    await delay(200);
    server.close();
    expect(visits).toEqual([]);
  });
});
