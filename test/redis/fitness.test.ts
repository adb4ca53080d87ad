/** What a process says of its Redis at the start, and of which it will not start. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis as Client } from 'ioredis';
import { closeRedis, connectRedis } from 'soundpost-kit/redis/connection';
import { checkRedis } from 'soundpost-kit/redis/fitness';
import { makeCertificates } from 'soundpost-testing/certificates';
import { freePorts } from 'soundpost-testing/ports';
import { spawnRedis, startTestRedis } from 'soundpost-testing/redis-server';
import { afterEach, describe, expect, it } from 'vitest';
import { logger } from '../jobs/queue-fixture.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startRedis(...settings: string[]): Promise<string> {
  const server = await startTestRedis(settings);
  closing.push(() => server.close());
  return server.url;
}

interface Verdict {
  readonly refusal: string | undefined;
  readonly warnings: readonly string[];
}

async function verdictOn(
  url: string,
  options: {
    tls?: Parameters<typeof connectRedis>[0]['tls'];
    waitReplicas?: number;
    patienceMs?: number;
  } = {},
): Promise<Verdict> {
  const { tls, waitReplicas = 0, patienceMs = 20_000 } = options;
  const redis = connectRedis({ url, tls, role: 'request', logger });
  closing.push(() => closeRedis(redis));
  const warnings: string[] = [];
  const listening = {
    ...logger,
    warn: (...said: unknown[]) => warnings.push(String(said.at(-1))),
  } as unknown as typeof logger;
  const refusal = await checkRedis({ redis, waitReplicas, patienceMs, logger: listening }).then(
    () => undefined,
    (error: Error) => error.message,
  );
  // That an answer was late once, on a busy machine, is said as well, and waited for.
  return {
    refusal,
    warnings: warnings.filter((said) => !/^Redis cannot be reached .*; waiting for it$/.test(said)),
  };
}

const userWithout = (command: string): string[] =>
  `--user default on nopass ~* &* +@all -${command}`.split(' ');

const DURABLE = ['--appendonly', 'yes'];

describe('a Redis', () => {
  it('that keeps what it has is taken without a word', async () => {
    expect(await verdictOn(await startRedis(...DURABLE))).toEqual({ refusal: undefined, warnings: [] });
  });

  it.each(['allkeys-lru', 'volatile-ttl'])('that evicts keys by %s is refused', async (policy) => {
    const { refusal } = await verdictOn(await startRedis(...DURABLE, '--maxmemory-policy', policy));
    expect(refusal).toContain(`maxmemory-policy ${policy}`);
    expect(refusal).toContain('set maxmemory-policy noeviction');
  });

  it('that evicts keys is refused also where CONFIG is forbidden', async () => {
    const url = await startRedis('--maxmemory-policy', 'allkeys-lru', ...userWithout('config'));
    expect((await verdictOn(url)).refusal).toContain('maxmemory-policy allkeys-lru');
  });

  it.each([
    ['nothing on disk', [], /keeps nothing on disk.*appendonly yes/],
    ['snapshots only', ['--save', '60 1'], /only takes snapshots.*save 60 1.*appendonly yes/],
    ['what nobody may see', [...userWithout('config')], /cannot be seen.*appendonly yes/],
  ])('that keeps %s is taken with a warning', async (_what, settings, says) => {
    const { refusal, warnings } = await verdictOn(await startRedis(...settings));
    expect(refusal).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(says)]);
  });

  it('whose user may not ask is refused with the place of the rule', async () => {
    const url = await startRedis(...userWithout('info'));
    expect((await verdictOn(url)).refusal).toMatch(/lacks a permission.*operations\/redis\.md/);
  });

  it('that wants a password is refused', async () => {
    const [port = 0] = await freePorts(1);
    await startRedis('--port', String(port), '--requirepass', 'right');
    for (const login of ['', 'default:wrong@']) {
      const { refusal } = await verdictOn(`redis://${login}127.0.0.1:${port}`);
      expect(refusal).toMatch(/does not accept the user and password/);
      expect(refusal).not.toContain('wrong@');
    }
    expect((await verdictOn(`redis://:right@127.0.0.1:${port}`)).refusal).toBeUndefined();
  });

  it('that is a replica is waited for, and refused when it stays one', async () => {
    const [port = 0] = await freePorts(1);
    const url = await startRedis(...DURABLE, '--replicaof', `127.0.0.1 ${port}`);
    expect((await verdictOn(url, { patienceMs: 2000 })).refusal).toMatch(/is a replica, and takes no writes/);
    const verdict = verdictOn(url);
    const client = new Client(url.slice('unix://'.length));
    await client.replicaof('NO', 'ONE');
    client.disconnect();
    expect((await verdict).refusal).toBeUndefined();
  });

  it('with fewer replicas than are waited for is taken with a warning', async () => {
    const { refusal, warnings } = await verdictOn(await startRedis(...DURABLE), { waitReplicas: 1 });
    expect(refusal).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('fewer replicas than REDIS_WAIT_REPLICAS')]);
  });

  it('that is not there is waited for, and refused when it does not come', async () => {
    const [port = 0] = await freePorts(1);
    const url = `redis://127.0.0.1:${port}`;
    expect((await verdictOn(url, { patienceMs: 300 })).refusal).toMatch(/cannot be reached.*ECONNREFUSED/);
    const verdict = verdictOn(url);
    await startRedis('--port', String(port));
    expect((await verdict).refusal).toBeUndefined();
  });

  it('of another kind than REDIS_URL says is refused with the right form', async () => {
    const [single = 0, node = 0, bus = 0, sentinel = 0] = await freePorts(4);
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-kinds-'));
    closing.push(() => rm(folder, { recursive: true, force: true }));
    await startRedis('--port', String(single));
    await startRedis('--port', String(node), '--cluster-enabled', 'yes', '--cluster-port', String(bus));
    const config = join(folder, 'sentinel.conf');
    await writeFile(config, `port ${sentinel}\n`);
    const server = await spawnRedis([config, '--sentinel'], /Sentinel ID is/);
    closing.push(() => server.end('SIGKILL'));
    const on = async (form: string, port: number, rest = '', options = {}) =>
      (await verdictOn(`${form}://127.0.0.1:${port}${rest}`, options)).refusal;
    expect(await on('redis', node)).toContain('redis+cluster://');
    expect(await on('redis+cluster', single)).toContain('redis:// instead of redis+cluster://');
    expect(await on('redis', sentinel)).toContain('redis+sentinel://');
    expect(await on('redis+sentinel', sentinel, '/nobody', { patienceMs: 300 })).toContain(
      'cannot be reached',
    );
  });

  it('whose certificate, or which ours, is not accepted is refused at once', {
    tags: 'openssl',
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-tls-'));
    closing.push(() => rm(folder, { recursive: true, force: true }));
    const { ca, server, client } = await makeCertificates(folder);
    const [port = 0] = await freePorts(1);
    await startRedis(
      ...['--tls-port', String(port), '--tls-ca-cert-file', ca],
      ...['--tls-cert-file', server.cert, '--tls-key-file', server.key, ...DURABLE],
    );
    const url = `rediss://127.0.0.1:${port}`;
    const authority = await readFile(ca, 'utf8');
    const own = { cert: await readFile(client.cert, 'utf8'), key: await readFile(client.key, 'utf8') };
    expect((await verdictOn(url, { tls: own })).refusal).toMatch(/certificate.*REDIS_CA_FILE/);
    expect((await verdictOn(url, { tls: { ca: authority } })).refusal).toMatch(
      /certificate.*REDIS_CERT_FILE/,
    );
    expect(await verdictOn(url, { tls: { ca: authority, ...own } })).toEqual({
      refusal: undefined,
      warnings: [],
    });
  });

  it.each([
    ['rediss', /ECONNRESET\); if it asks for a certificate, set REDIS_CERT_FILE/],
    ['redis', /ECONNRESET\)$/],
  ])('that resets connections by %s:// is waited for, and refused', async (form, says) => {
    const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closing.push(() => promisify(server.close.bind(server))());
    const { port } = server.address() as AddressInfo;
    expect((await verdictOn(`${form}://127.0.0.1:${port}`, { patienceMs: 300 })).refusal).toMatch(says);
  });

  it('whose socket reports a second error, as one that refuses our certificate does, ends no process', async () => {
    const redis = connectRedis({ url: await startRedis(...DURABLE), role: 'request', logger }) as Client;
    closing.push(() => closeRedis(redis));
    await redis.ping();
    const { stream } = redis;
    // Without a listener this throws.
    for (const which of ['first', 'second']) stream.emit('error', new Error(which));
  });

  it('behind Sentinels with TLS and passwords of their own is found', { tags: 'openssl' }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-sentinel-'));
    closing.push(() => rm(folder, { recursive: true, force: true }));
    const { ca, server } = await makeCertificates(folder);
    const [port = 0, sentinel = 0] = await freePorts(2);
    const tls = { 'tls-ca-cert-file': ca, 'tls-cert-file': server.cert, 'tls-key-file': server.key };
    const common = { ...tls, 'tls-auth-clients': 'no', 'tls-replication': 'yes' };
    const flags = Object.entries(common).flatMap(([name, value]) => [`--${name}`, value]);
    await startRedis('--tls-port', String(port), '--requirepass', 'data', ...flags, ...DURABLE);
    const page = await readFile(
      join(import.meta.dirname, '..', '..', 'docs', 'operations', 'redis.md'),
      'utf8',
    );
    const user = /^user watcher on .*$/m.exec(page)?.[0].replace('>the-password', '>watch');
    const config = join(folder, 'sentinel.conf');
    await writeFile(
      config,
      [
        'port 0',
        `tls-port ${sentinel}`,
        ...Object.entries(common).map(([name, value]) => `${name} ${value}`),
        `${user}`,
        'user default on >guard ~* &* +@all',
        'sentinel sentinel-pass guard',
        `sentinel monitor main 127.0.0.1 ${port} 1`,
        'sentinel auth-pass main data',
        '',
      ].join('\n'),
    );
    const watcher = await spawnRedis([config, '--sentinel'], /Sentinel ID is/);
    closing.push(() => watcher.end('SIGKILL'));
    const authority = { ca: await readFile(ca, 'utf8') };
    const url = `rediss+sentinel://:data@localhost:${sentinel}/main/3`;
    const found = await verdictOn(`${url}?sentinelUsername=watcher&sentinelPassword=watch`, {
      tls: authority,
    });
    expect(found).toEqual({ refusal: undefined, warnings: [] });
    const guard = new Client({ port: sentinel, password: 'guard', tls: { ca: authority.ca } });
    expect(await guard.acl('LOG')).toEqual([]);
    guard.disconnect();
    expect(
      (await verdictOn(`${url}?sentinelUsername=watcher&sentinelPassword=other`, { tls: authority })).refusal,
    ).toMatch(/password/);
  });
});
