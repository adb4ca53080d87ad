/** The fingerprint of the root secret in Redis: who leaves it there, and what is refused because of it. Redis, processes and files are real. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig, searchPath } from '../src/config.ts';
import { dieWithParent } from '../src/launcher.ts';
import { createLogger } from '../src/observe/logger.ts';
import { type Redis as Connection, connectRedis } from '../src/redis/connection.ts';
import { startEmbeddedRedis } from '../src/redis/embedded.ts';
import { acceptRootSecret, agreedRootSecret, lookAtRootSecret } from '../src/root-secret.ts';
import { TestService } from './api/api-fixture.ts';
import { command } from './cli/in-process.ts';
import { TestCluster } from './redis-cluster.ts';
import { startTestRedis, type TestRedis } from './redis-server.ts';
import { ServiceHome, soundpost } from './service.ts';

const OLD = 'the secret that everything was made with, 32 bytes';
const OTHER = 'another secret, which is of 32 bytes or more as well';
const KEY = '{soundpost}:sp:secret-fingerprint';
const logger = createLogger('silent');

let redis: TestRedis;
let connection: Connection;
let folder = '';
beforeAll(async () => {
  redis = await startTestRedis();
  connection = connectRedis({ url: redis.url, role: 'request', logger });
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
    for (let round = 0; round < 10; round += 1) {
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
  const connected = connectRedis({ url: cluster.url, role: 'request', logger });
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

describe('processes', () => {
  it('one does not start with another SECRET_KEY', async () => {
    await agreed({ SECRET_KEY: OLD });
    const home = await ServiceHome.make({ REDIS_URL: redis.url, SECRET_KEY: OTHER });
    const started = home.start('gateway');
    expect(await started.exited).toBe(2);
    expect(started.output()).toMatch(/SECRET_KEY \(fingerprint/);
    await home.remove();
  });

  it('keys waits for a Redis that is late', async () => {
    await agreed({ SECRET_KEY: OLD });
    const home = await ServiceHome.make({ REDIS_URL: redis.url, SECRET_KEY: OLD });
    process.kill(redis.pid, 'SIGSTOP');
    const listing = home.run([...soundpost, 'keys', 'list', '--json']);
    await listing.says(/timed out/);
    process.kill(redis.pid, 'SIGCONT');
    expect([await listing.exited, listing.output()]).toEqual([0, expect.stringMatching(/^\[\]$/m)]);
    await home.remove();
  });
});

describe('commands', () => {
  it('keys and doctor refuse a lost secret beside a Redis of their own until it is accepted', async () => {
    const at = { DATA_DIR: folder, API_PORT: '0', GATEWAY_PORT: '0', WORKER_PORT: '0' };
    const file = join(folder, 'secret-key');
    expect((await command(['keys', 'create', '--name', 'before'], at)).code).toBe(0);
    const secret = await readFile(file, 'utf8');
    await rm(file);

    const own = await startEmbeddedRedis({
      folder: join(folder, 'redis'),
      launcher: dieWithParent('TERM', searchPath),
    });
    try {
      const { said } = await command(['doctor', '--json'], at);
      expect(JSON.parse(said).checks).toContainEqual({
        check: 'Secret',
        verdict: 'fault',
        found: expect.stringMatching(/^SECRET_KEY is not set and .* is not there/),
        remedy: expect.stringMatching(/restore the file.*accept-secret/),
      });
      const refused = await command(['keys', 'create', '--name', 'x'], at);
      expect(refused.code).toBe(2);
      expect(refused.said).toMatch(/restore the file, or set SECRET_KEY.*accept-secret/);
      await expect(readFile(file)).rejects.toThrow('ENOENT');

      const accepted = await command(['accept-secret'], at);
      expect(accepted.code).toBe(0);
      expect(accepted.said).toMatch(
        /Redis takes the SECRET_KEY with the fingerprint \w{8} .* instead of \w{8}/,
      );
      expect(await readFile(file, 'utf8')).not.toBe(secret);
      expect((await command(['keys', 'list'], at)).code).toBe(0);

      // The old one can still be brought back.
      await writeFile(file, secret);
      expect((await command(['keys', 'list'], at)).code).toBe(2);
      expect((await command(['accept-secret'], at)).code).toBe(0);
      expect((await command(['keys', 'list'], at)).said).toContain('before');
    } finally {
      await own.close();
    }
  });

  it('what was encrypted under a lost one is made anew, and keeps nothing else from working', async () => {
    const start = (SECRET_KEY: string): Promise<TestService> =>
      TestService.start({
        parts: ['gateway'],
        environment: { REDIS_URL: redis.url, SECRET_KEY, OUTBOUND_ALLOW: '127.0.0.1:9' },
      });
    const at = { DATA_DIR: folder, REDIS_URL: redis.url, SECRET_KEY: OTHER };
    const secretOf = async (service: TestService, key: string): Promise<string> =>
      (await service.call('GET', '/v1/webhooks/secret', { key })).body.data.secret;
    const webhook = { enabled: true, url: 'http://127.0.0.1:9/hook', events: ['messages.upsert'] };

    const before = await start(OLD);
    const { key } = before;
    const oldSecret = await secretOf(before, key);
    const connection = { jid: 'ada@127.0.0.1', password: 'wrong', service: 'xmpp://127.0.0.1:9' };
    const far = { instanceName: 'far', transport: 'xmpp', connection };
    expect((await before.gateway('POST', '/instance/create', far)).status).toBe(201);
    expect((await before.gateway('POST', '/webhook/set/main', { webhook })).status).toBe(201);
    await before.close();

    expect((await command(['accept-secret'], at)).code).toBe(0);
    const rotated = await command(['keys', 'rotate', key.split('_')[1] ?? ''], at);
    const after = await start(OTHER);
    expect((await after.call('GET', '/v1/jobs', { key })).status).toBe(401);
    expect(await secretOf(after, rotated.said)).not.toBe(oldSecret);
    const listed = await after.gateway('GET', '/instance/fetchInstances');
    expect([listed.status, JSON.stringify(listed.body)]).toEqual([200, expect.stringContaining('far')]);
    expect((await after.gateway('POST', '/webhook/set/main', { webhook })).status).toBe(201);
    await after.close();
  });
});
