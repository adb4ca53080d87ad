/** The fingerprint of the root secret in Redis: who leaves it there, and what is refused because of it. Redis, processes and files are real. */

import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from 'soundpost-kit/observe/logger';
import type { Redis as Connection } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { TestCluster } from 'soundpost-testing/redis-cluster';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/process/config.ts';
import { acceptRootSecret, agreedRootSecret, lookAtRootSecret } from '../../src/process/secrets.ts';
import { TestService } from '../api/api-fixture.ts';
import { diagnose } from '../cli/doctor/doctor-run.ts';
import { runCommand } from '../command.ts';

const OLD = 'the secret that everything was made with, 32 bytes';
const OTHER = 'another secret, which is of 32 bytes or more as well';
const KEY = '{soundpost}:sp:secret-fingerprint';
const logger = createLogger('silent');

let redis: TestRedis;
let connection: Connection;
let folder = '';
beforeAll(async () => {
  redis = await startTestRedis();
  connection = connectPatiently(redis.url);
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-root-secret-'));
  await connection.flushall();
  return () => rm(folder, { recursive: true });
});
afterAll(async () => {
  connection.disconnect();
  await redis.close();
});

type Environment = Readonly<Record<string, string>>;
const config = (environment: Environment) =>
  loadConfig({ DATA_DIR: folder, REDIS_URL: redis.url, ...environment });
const agreed = (environment: Environment): Promise<string> =>
  agreedRootSecret(config(environment), connection, logger);
const shared = (): Environment => ({ SECRET_KEY_FILE: join(folder, 'secret-key') });

describe('a SECRET_KEY', () => {
  it('leaves its fingerprint, which tells nothing of it, and is refused when it is another one later', async () => {
    expect(await agreed({ SECRET_KEY: OLD })).toBe(OLD);
    const fingerprint = await connection.get(KEY);
    expect(fingerprint).toMatch(/^[0-9a-f]{32}$/);
    expect(await agreed({ SECRET_KEY: OLD })).toBe(OLD);
    const refused = await agreed({ SECRET_KEY: OTHER }).catch((error: Error) => error);
    expect(refused).toMatchObject({ name: 'ConfigurationError' });
    const said = String(refused);
    expect(said).toMatch(/SECRET_KEY \(fingerprint \w{8}\) is not the SECRET_KEY that Redis knows/);
    expect(said).toContain(`fingerprint ${fingerprint?.slice(0, 8)} in ${KEY}`);
    expect(said).toMatch(/set SECRET_KEY to that one again.*soundpost accept-secret/);
    expect(said).not.toContain(OTHER);
    expect(await connection.get(KEY)).toBe(fingerprint);
  });

  it('of an installation without a fingerprint is adopted, also when Redis was emptied', async () => {
    await connection.sadd('{soundpost}:sp:keys', 'somebody');
    expect(await agreed({ SECRET_KEY: OLD })).toBe(OLD);
    await expect(agreed({ SECRET_KEY: OTHER })).rejects.toThrow('is not the SECRET_KEY');
    await connection.flushall();
    expect(await agreed({ SECRET_KEY: OTHER })).toBe(OTHER);
  });

  it('is accepted on purpose, and then the old one is refused', async () => {
    await agreed({ SECRET_KEY: OLD });
    const { before, now } = await acceptRootSecret(config({ SECRET_KEY: OTHER }), connection, logger);
    expect(before).not.toBe(now);
    expect(await agreed({ SECRET_KEY: OTHER })).toBe(OTHER);
    await expect(agreed({ SECRET_KEY: OLD })).rejects.toThrow('is not the SECRET_KEY');
  });

  it('of two processes that start at the same moment with different ones stops one of them', async () => {
    for (let round = 0; round < 3; round += 1) {
      await connection.flushall();
      const ends = await Promise.allSettled([OLD, OTHER].map((SECRET_KEY) => agreed({ SECRET_KEY })));
      expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    }
  });

  it('that was looked at before the other was there does not take its place', async () => {
    const file = join(folder, 'secret-key');
    await writeFile(file, '');
    const late = agreed(shared()).catch((error: Error) => error);
    // On one connection it has asked before the other does; it waits for its file.
    expect(await agreed({ SECRET_KEY: OLD })).toBe(OLD);
    await writeFile(file, OTHER);
    expect(String(await late)).toContain('is not the SECRET_KEY');
    expect(await agreed({ SECRET_KEY: OLD })).toBe(OLD);
  });

  it('does not keep a process from starting while Redis refuses writes', async () => {
    await connection.config('SET', 'maxmemory', '1');
    try {
      expect(await agreed({ SECRET_KEY: OLD })).toBe(OLD);
    } finally {
      await connection.config('SET', 'maxmemory', '0');
    }
    expect(await connection.get(KEY)).toBeNull();
  });
});

describe('SECRET_KEY_FILE', () => {
  it('is made once by those who start at the same time, and read from then on', async () => {
    const seen = await Promise.all(Array.from({ length: 8 }, () => agreed(shared())));
    expect(new Set(seen).size).toBe(1);
    expect(await readFile(join(folder, 'secret-key'), 'utf8')).toBe(seen[0]);
    expect(await agreed(shared())).toBe(seen[0]);
    // SECRET_KEY goes before it.
    expect(await agreed({ ...shared(), SECRET_KEY: String(seen[0]) })).toBe(seen[0]);
    await expect(agreed({ ...shared(), SECRET_KEY: OTHER })).rejects.toThrow('is not the SECRET_KEY');
  });

  it('that is lost is not made anew', async () => {
    const secret = await agreed(shared());
    await rm(join(folder, 'secret-key'));
    await expect(agreed(shared())).rejects.toThrow(
      /SECRET_KEY is not set and .*secret-key is not there, but Redis has data.*restore the file/,
    );
    expect(await readdir(folder)).toEqual([]);
    expect(await agreed({ ...shared(), SECRET_KEY: secret })).toBe(secret);
    await writeFile(join(folder, 'secret-key'), `${secret}\n`);
    expect(await agreed(shared())).toBe(secret);
  });

  it('that is lost where there was no fingerprint yet is not made anew beside API keys', async () => {
    await connection.sadd('{soundpost}:sp:keys', 'somebody');
    await expect(agreed(shared())).rejects.toThrow('Redis has data that was made with a secret:');
    await acceptRootSecret(config(shared()), connection, logger);
    expect(await agreed(shared())).toBe(await readFile(join(folder, 'secret-key'), 'utf8'));
  });

  it('is not made beside a bucket, where each machine would make its own', async () => {
    const bucket = { ...shared(), STORAGE_URL: 's3://sounds' };
    await expect(agreed(bucket)).rejects.toThrow(/SECRET_KEY_FILE: .* set SECRET_KEY to the same value/);
    expect(await readdir(folder)).toEqual([]);
    await writeFile(join(folder, 'secret-key'), OLD);
    expect(await agreed(bucket)).toBe(OLD);
  });

  it('or SECRET_KEY has to be set with REDIS_URL', () => {
    expect(() => config({})).toThrow(/SECRET_KEY: must be set when REDIS_URL is.*SECRET_KEY_FILE/);
  });
});

it('is in the same slot as all else of a cluster, and looked at by changing nothing', async () => {
  const cluster = await TestCluster.start();
  const connected = connectPatiently(cluster.url);
  try {
    await connected.cluster('INFO');
    const at = (SECRET_KEY: string) => config({ SECRET_KEY });
    expect(await lookAtRootSecret(at(OLD), connected)).toMatchObject({ kind: 'new' });
    expect(await connected.exists(KEY)).toBe(0);
    expect(await agreedRootSecret(at(OLD), connected, logger)).toBe(OLD);
    expect(await lookAtRootSecret(at(OLD), connected)).toMatchObject({ kind: 'same' });
    expect(await lookAtRootSecret(at(OTHER), connected)).toMatchObject({ kind: 'refused' });
  } finally {
    connected.disconnect();
    await cluster.close();
  }
});

it('another SECRET_KEY ends a process that serves, with 2', async () => {
  await agreed({ SECRET_KEY: OLD });
  const home = await ServiceHome.make({ REDIS_URL: redis.url, SECRET_KEY: OTHER });
  const started = home.start('api');
  expect(await started.exited).toBe(2);
  expect(started.output()).toMatch(/SECRET_KEY \(fingerprint/);
  await home.remove();
});

describe('on the command line', () => {
  it('a command waits for a Redis that is late', async () => {
    await agreed({ SECRET_KEY: OLD });
    const late = await lateRedis(2);
    const listed = await runCommand(['keys', 'list', '--json'], { REDIS_URL: late.url, SECRET_KEY: OLD });
    expect(listed).toEqual({ code: 0, said: '[]' });
    expect(late.asked()).toBeGreaterThan(1);
    await late.close();
  });

  it('a lost secret is refused until it is accepted, and can still be brought back', async () => {
    const given = { DATA_DIR: folder, REDIS_URL: redis.url, ...shared() };
    const keys = (...args: string[]) => runCommand(['keys', ...args], given);
    const file = join(folder, 'secret-key');
    expect((await keys('create', '--name', 'first')).code).toBe(0);
    const secret = await readFile(file, 'utf8');
    await rm(file);

    expect(await keys('create', '--name', 'x')).toEqual({
      code: 2,
      said: expect.stringMatching(/restore the file, or set SECRET_KEY.*accept-secret/),
    });
    await expect(readFile(file)).rejects.toThrow('ENOENT');
    const { faults, of } = await diagnose(given);
    expect(faults).toContainEqual(
      expect.stringMatching(/^Secret: SECRET_KEY is not set and .* is not there/),
    );
    expect(of('Secret')[0]?.remedy).toMatch(/restore the file.*accept-secret/);

    expect(await runCommand(['accept-secret'], given)).toEqual({
      code: 0,
      said: expect.stringMatching(/Redis now accepts the SECRET_KEY with fingerprint \w{8} instead of \w{8}/),
    });
    expect((await keys('list')).code).toBe(0);
    await writeFile(file, secret);
    expect((await keys('list')).code).toBe(2);
    expect((await runCommand(['accept-secret'], given)).code).toBe(0);
    expect((await keys('list')).code).toBe(0);
  });

  it('doctor finds a lost one also where the embedded Redis is not running', async () => {
    const given = { DATA_DIR: folder, REDIS_URL: '', SECRET_KEY: '', SECRET_KEY_FILE: '' };
    expect((await runCommand(['keys', 'create', '--name', 'first'], given)).code).toBe(0);
    await rm(join(folder, 'secret-key'));
    const { code, faults } = await diagnose(given);
    expect(faults).toEqual([expect.stringMatching(/^Secret: SECRET_KEY is not set and .* is not there/)]);
    expect(code).toBe(1);
    expect(await readdir(folder)).not.toContain('secret-key');
  });

  it('what was encrypted under a lost one is made anew, and keeps nothing else from working', async () => {
    const environment = { REDIS_URL: redis.url, OUTBOUND_ALLOW: '127.0.0.1:9' };
    const start = (SECRET_KEY: string) =>
      TestService.start({ parts: ['gateway'], environment: { ...environment, SECRET_KEY } });
    const secretOf = async (service: TestService, key: string) =>
      (await service.call('POST', '/v1/webhooks/secret', { key })).body.data.secret;
    const before = await start(OLD);
    const oldSecret = await secretOf(before, before.key);
    const connection = { jid: 'ada@127.0.0.1', password: 'wrong', service: 'xmpp://127.0.0.1:9' };
    const far = { instanceName: 'far', transport: 'xmpp', connection };
    expect((await before.gateway('POST', '/instance/create', far)).status).toBe(201);
    const webhook = { enabled: true, url: 'http://127.0.0.1:9/hook', events: ['messages.upsert'] };
    expect((await before.gateway('POST', '/webhook/set/main', { webhook })).status).toBe(201);
    await before.close();

    const other = { ...environment, SECRET_KEY: OTHER };
    expect((await runCommand(['accept-secret'], other)).code).toBe(0);
    const rotated = await runCommand(['keys', 'rotate', before.key.split('_')[1] ?? ''], other);
    const after = await start(OTHER);
    expect((await after.call('GET', '/v1/jobs', { key: before.key })).status).toBe(401);
    expect(await secretOf(after, rotated.said)).not.toBe(oldSecret);
    const listed = await after.gateway('GET', '/instance/fetchInstances');
    expect(listed.status).toBe(200);
    expect(JSON.stringify(listed.body)).toContain('far');
    expect((await after.gateway('POST', '/webhook/set/main', { webhook })).status).toBe(201);
    await after.close();
  });
});

/** A way to Redis on which a question, and all behind it, is held back until it has come so many times. */
async function lateRedis(
  times: number,
): Promise<{ url: string; asked: () => number; close: () => Promise<void> }> {
  let asked = 0;
  const path = join(folder, 'late.sock');
  const server = createServer((client) => {
    const upstream = createConnection(redis.socketPath);
    const held: Buffer[] = [];
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    client.on('close', () => upstream.destroy());
    client.on('data', (chunk: Buffer) => {
      asked += chunk.toString('latin1').split(/\r\nexists\r\n/i).length - 1;
      held.push(chunk);
      if (asked === 0 || asked >= times) upstream.write(Buffer.concat(held.splice(0)));
    });
    upstream.pipe(client);
  }).listen(path);
  await once(server, 'listening');
  return {
    url: `unix://${path}`,
    asked: () => asked,
    async close() {
      server.close();
      await once(server, 'close');
    },
  };
}
