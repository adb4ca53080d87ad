/** The fingerprint of the root secret in Redis: who leaves it there, and what is refused because of it. Redis, processes and files are real. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../src/config.ts';
import { createLogger } from '../src/observe/logger.ts';
import { type Redis as Connection, connectRedis } from '../src/redis/connection.ts';
import { acceptRootSecret, agreedRootSecret, lookAtRootSecret } from '../src/root-secret.ts';
import { diagnose } from './cli/doctor/doctor-run.ts';
import { fetch } from './http.ts';
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
  it.each(['api', 'worker', 'gateway'])('%s does not start with another SECRET_KEY', async (command) => {
    await agreed({ SECRET_KEY: OLD });
    const home = await ServiceHome.make({ REDIS_URL: redis.url, SECRET_KEY: OTHER });
    const started = home.start(command);
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

  it('serve with its own Redis, keys and doctor refuse a lost secret until it is accepted', async () => {
    const home = await ServiceHome.make({ BOOTSTRAP_API_KEY: '' });
    const data = join(home.folder, 'data');
    const file = join(data, 'secret-key');
    const { process: first, api } = await home.serve();
    const key = await first.says(/API key\s+(sp_\S+)/);
    const asked = (url: string) => fetch(`${url}/v1/jobs`, { headers: { 'X-API-Key': key } });
    expect((await asked(api)).status).toBe(200);
    expect((await diagnose({ DATA_DIR: data })).of('Secret')).toEqual([
      expect.objectContaining({ verdict: 'ok', found: expect.stringContaining(file) }),
    ]);
    const secret = await readFile(file, 'utf8');
    await rm(file);
    const { faults, of } = await diagnose({ DATA_DIR: data });
    expect(faults).toContainEqual(
      expect.stringMatching(/^Secret: SECRET_KEY is not set and .* is not there/),
    );
    expect(of('Secret')[0]?.remedy).toMatch(/restore the file.*accept-secret/);
    first.signal('SIGTERM');
    expect(await first.exited).toBe(0);

    for (const command of [['serve'], ['keys', 'create', '--name', 'x']]) {
      const refused = home.run([...soundpost, ...command]);
      expect([command[0], await refused.exited]).toEqual([command[0], 2]);
      expect(refused.output()).toMatch(/restore the file, or set SECRET_KEY.*accept-secret/);
    }
    await expect(readFile(file)).rejects.toThrow('ENOENT');

    const accepted = home.run([...soundpost, 'accept-secret']);
    expect(await accepted.exited).toBe(0);
    expect(accepted.output()).toMatch(
      /Redis takes the SECRET_KEY with the fingerprint \w{8} .* instead of \w{8}/,
    );
    const { process: second, api: again } = await home.serve();
    expect((await asked(again)).status).toBe(401);
    second.signal('SIGTERM');
    expect(await second.exited).toBe(0);

    // The old one can still be brought back.
    await writeFile(file, secret);
    expect(await home.run([...soundpost, 'accept-secret']).exited).toBe(0);
    expect((await asked((await home.serve()).api)).status).toBe(200);
    await home.remove();
  });

  it('what was encrypted under a lost one is made anew, and keeps nothing else from working', async () => {
    const apikey = 'gateway-key-of-these-tests';
    const home = await ServiceHome.make({
      REDIS_URL: redis.url,
      GATEWAY_API_KEY: apikey,
      OUTBOUND_ALLOW: '127.0.0.1:9',
    });
    const at = (url: string, headers: Record<string, string>) => async (path: string, json?: object) => {
      const post = { method: 'POST', body: JSON.stringify(json) };
      const response = await fetch(`${url}${path}`, {
        ...(json === undefined ? {} : post),
        headers: { 'Content-Type': 'application/json', ...headers },
      });
      return { status: response.status, body: (await response.json()) as { data: { secret: string } } };
    };
    const before = await home.serve({ SECRET_KEY: OLD });
    const secretOf = async (api: string, key: string) =>
      (await at(api, { 'X-API-Key': key })('/v1/webhooks/secret')).body.data.secret;
    const oldSecret = await secretOf(before.api, home.key);
    const gateway = at(before.gateway, { apikey });
    const connection = { jid: 'ada@127.0.0.1', password: 'wrong', service: 'xmpp://127.0.0.1:9' };
    const created = await gateway('/instance/create', { instanceName: 'far', transport: 'xmpp', connection });
    expect(created.status).toBe(201);
    const webhook = { enabled: true, url: 'http://127.0.0.1:9/hook', events: ['messages.upsert'] };
    expect((await gateway('/webhook/set/main', { webhook })).status).toBe(201);
    before.process.signal('SIGTERM');
    expect(await before.process.exited).toBe(0);

    expect(await home.run([...soundpost, 'accept-secret'], { SECRET_KEY: OTHER }).exited).toBe(0);
    const made = await home.run([...soundpost, 'keys', 'rotate', home.key.split('_')[1] ?? ''], {
      SECRET_KEY: OTHER,
    });
    const newKey = await made.says(/(sp_\w+)/);
    const after = await home.serve({ SECRET_KEY: OTHER, BOOTSTRAP_API_KEY: '' });
    expect(await secretOf(after.api, newKey)).not.toBe(oldSecret);
    const again = at(after.gateway, { apikey });
    const listed = await again('/instance/fetchInstances');
    expect(listed.status).toBe(200);
    expect(JSON.stringify(listed.body)).toContain('far');
    expect((await again('/webhook/set/main', { webhook })).status).toBe(201);
    await home.remove();
  });
});
