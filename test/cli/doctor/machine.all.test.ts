import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freeNeighbours, freePorts } from 'soundpost-testing/ports';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { MIB, makeSmallVolume } from 'soundpost-testing/small-volume';
import { afterEach, describe, expect, it } from 'vitest';
import { ACL_RULE } from '../../../src/cli/doctor/redis.ts';
import { readPage } from '../../docs/markdown.ts';
import { diagnose, doctor } from './doctor-run.ts';
import { shiftedRedis } from './shifted-redis.ts';

const SECRET_KEY = 'a secret that is long enough for everybody';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function redisWith(...settings: string[]): Promise<TestRedis> {
  const redis = await startTestRedis(settings);
  closing.push(() => redis.close());
  return redis;
}

/** An HTTP server that is not Soundpost. */
async function stranger(port = 0): Promise<number> {
  const server = createServer((_request, response) => response.end('hello')).listen(port, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}

describe('the disk', () => {
  it('that is full is a fault, and so is one that cannot be written to, or takes no files', {
    tags: 'mount',
  }, async () => {
    const volume = await makeSmallVolume(20 * MIB);
    closing.push(() => volume.remove());
    await volume.fillUpTo(0);
    const [full, readOnly, shown] = await Promise.all([
      diagnose({ DATA_DIR: volume.folder }),
      diagnose({ DATA_DIR: '/dev/null/data' }),
      diagnose({ DATA_DIR: '/proc/data' }),
    ]);
    expect(full.code).toBe(1);
    expect(full.faults).toEqual([
      expect.stringMatching(/^Disk: .*: 0 MiB free of 20 MiB \(tmpfs\).*no jobs are accepted/),
    ]);
    const [room, kind] = full.of('Disk');
    expect(room?.command).toBe(`du -xh ${volume.folder} | sort -h | tail`);
    expect(kind).toMatchObject({ verdict: 'warning', found: expect.stringContaining('everything is lost') });
    expect(readOnly.faults).toEqual([
      expect.stringMatching(/^Disk: cannot write to DATA_DIR=\/dev\/null\/data/),
    ]);
    expect(readOnly.of('Disk')[0]?.command).toMatch(
      /install -d -o "\$\(id -un\)" -m 0700 \/dev\/null\/data$/,
    );
    // Root is told that it may write there.
    expect(shown.faults).toEqual([
      expect.stringMatching(/^Disk: DATA_DIR=\/proc\/data .*\(proc\) cannot hold files/),
    ]);
  });
});

describe('a port', () => {
  it('that another program has is a fault with a free one; the same port twice too', async () => {
    const [port, next] = await freeNeighbours();
    await stranger(port);
    const [both = 0] = await freePorts(1);
    const [taken, twice, elsewhere] = await Promise.all([
      diagnose({ API_PORT: String(port), WORKER_PORT: String(next) }),
      diagnose({ API_PORT: String(both), GATEWAY_PORT: String(both) }),
      // An address of another machine.
      diagnose({ HOST: '203.0.113.1' }),
    ]);
    expect(taken.faults).toEqual([`Ports: API_PORT=${port} is in use by another program`]);
    const [, free = ''] = /^export API_PORT=(\d+)$/.exec(taken.of('Ports')[0]?.command ?? '') ?? [];
    expect(Number(free)).toBeGreaterThan(port);
    expect(twice.faults).toEqual([`Ports: API_PORT and GATEWAY_PORT are both ${both}`]);
    expect(elsewhere.faults).toContainEqual(
      expect.stringContaining('HOST=203.0.113.1 is not an address of this machine'),
    );
  });

  it('that Soundpost itself has is fine; so is the Redis that it runs, which is left alone', async () => {
    const home = await ServiceHome.make();
    closing.push(() => home.remove());
    const { api, gateway } = await home.serve();
    const { code, of } = await diagnose({
      DATA_DIR: join(home.folder, 'data'),
      API_PORT: new URL(api).port,
      GATEWAY_PORT: new URL(gateway).port,
    });
    expect(
      of('Ports')
        .slice(0, 2)
        .map(({ verdict, found }) => `${verdict} ${found}`),
    ).toEqual([
      `ok API_PORT=${new URL(api).port} is in use by Soundpost itself, which is running`,
      `ok GATEWAY_PORT=${new URL(gateway).port} is in use by Soundpost itself, which is running`,
    ]);
    expect(of('Redis')[0]).toMatchObject({
      verdict: 'ok',
      found: expect.stringMatching(/^Redis \d\S+ of the Soundpost that runs on DATA_DIR answers$/),
    });
    expect(of('Clock')[0]?.found).toMatch(/, same as Redis$/);
    expect(code).toBe(0);
  });
});

describe('Redis', () => {
  it('that evicts is a fault; one that keeps nothing is a warning', async () => {
    const redis = await redisWith('--maxmemory-policy', 'allkeys-lru');
    const forgetful = await redisWith();
    const [evicting, keepless] = await Promise.all([
      diagnose({ REDIS_URL: redis.url, SECRET_KEY }),
      diagnose({ REDIS_URL: forgetful.url, SECRET_KEY }),
    ]);
    expect(evicting.faults).toEqual([expect.stringContaining('maxmemory-policy allkeys-lru')]);
    expect(evicting.of('Redis')[0]?.command).toBe(
      `redis-cli -s ${redis.socketPath} CONFIG SET maxmemory-policy noeviction`,
    );
    expect(keepless.code).toBe(0);
    expect(keepless.of('Redis')[1]).toMatchObject({
      verdict: 'warning',
      command: `redis-cli -s ${forgetful.socketPath} CONFIG SET appendonly yes`,
    });
  });

  it('that gives its user too little is a fault with the rule; with the rule it is none', async () => {
    expect(readPage('docs/operations/redis.md')).toContain(ACL_RULE);
    const [port = 0] = await freePorts(1);
    const asUser = (rule: string): string[] => [
      '--user',
      'soundpost',
      'on',
      '>the-password',
      ...rule.split(' '),
    ];
    const rule = ACL_RULE.replace('+@pubsub ', '');
    const little = await redisWith(
      '--port',
      String(port),
      ...asUser(rule.replace('+eval ', '').replace('+evalsha ', '')),
    );
    const url = `redis://soundpost:the-password@127.0.0.1:${port}`;
    const { faults, of } = await diagnose({ REDIS_URL: url, SECRET_KEY });
    expect(faults).toEqual([
      expect.stringMatching(/^Redis: the user in REDIS_URL lacks a permission .*eval/),
    ]);
    const command = of('Redis')[0]?.command ?? '';
    expect(command).toContain(`redis-cli -h 127.0.0.1 -p ${port} --askpass ACL SETUSER soundpost`);
    expect(JSON.stringify(faults) + command).not.toContain('the-password');
    await little.close();
    closing.pop();
    await redisWith('--port', String(port), ...asUser(ACL_RULE));
    expect((await diagnose({ REDIS_URL: url, SECRET_KEY })).faults).toEqual([]);
  });

  it('that hangs, or is not there, does not keep the rest from being told', async () => {
    const redis = await redisWith();
    process.kill(redis.pid, 'SIGSTOP');
    closing.push(async () => process.kill(redis.pid, 'SIGCONT'));
    const [port = 0] = await freePorts(1);
    const [hanging, absent] = await Promise.all([
      diagnose({ REDIS_URL: redis.url, SECRET_KEY }),
      diagnose({ REDIS_URL: `redis://127.0.0.1:${port}`, SECRET_KEY }),
    ]);
    expect(hanging.faults).toEqual([expect.stringMatching(/^Redis: Redis cannot be reached/)]);
    expect(hanging.of('ffmpeg')[0]?.verdict).toBe('ok');
    expect(absent.faults).toEqual([expect.stringMatching(/^Redis: Redis cannot be reached .*ECONNREFUSED/)]);
    expect(absent.of('Redis')[0]?.command).toBeDefined();
  });

  it('whose clock is another is a warning, and a fault once no jobs are taken', async () => {
    const { socketPath } = await redisWith('--appendonly', 'yes');
    const [behind, ahead] = await Promise.all([shiftedRedis(socketPath, -4), shiftedRedis(socketPath, 3600)]);
    closing.push(
      () => behind.close(),
      () => ahead.close(),
    );
    const [some, much] = await Promise.all([
      diagnose({ REDIS_URL: behind.url, SECRET_KEY }),
      diagnose({ REDIS_URL: ahead.url, SECRET_KEY }),
    ]);
    expect(some.code).toBe(0);
    expect(some.of('Clock')[0]).toMatchObject({
      verdict: 'warning',
      found: expect.stringMatching(/^[345]\.\d s ahead of the clock of Redis$/),
      command: expect.stringMatching(/chrony|timedatectl/),
    });
    expect(much.faults).toEqual([expect.stringMatching(/^Clock: 3\d{3}\.\d s behind .*start no jobs/)]);
  });
});

describe('the environment', () => {
  it('has every fault named, each with what mends it, and the rest is checked with the defaults', async () => {
    const { code, of, faults } = await diagnose({
      API_PORT: 'eighty',
      LOG_LEVEL: 'loud',
      ADMIN_KEY: 'short',
      S3_REGION: 'somewhere',
      OUTBOUND_ALLOW: 'nowhere',
      REDIS_URL: 'redis://one,two',
      GATEWAY_URL: `http://127.0.0.1:${await stranger()}`,
      GATEWAY_KIND: 'other',
    });
    expect(code).toBe(1);
    const told = of('Configuration').map(({ found, command }) => `${found.split(':')[0]} → ${command}`);
    expect(told.sort()).toEqual([
      'ADMIN_KEY → export ADMIN_KEY="$(openssl rand -hex 32)"',
      'API_PORT → unset API_PORT',
      'LOG_LEVEL → unset LOG_LEVEL',
      'OUTBOUND_ALLOW → unset OUTBOUND_ALLOW',
      'REDIS_URL → unset REDIS_URL',
      'S3_REGION → unset S3_REGION',
      'SECRET_KEY → export SECRET_KEY="$(openssl rand -hex 32)"',
    ]);
    expect(faults).toHaveLength(7);
    expect(of('Ports')[0]?.found).toMatch(/^API_PORT=8080 /);
    expect(of('Gateway')[0]?.found).toMatch(/answers \(HTTP 200\)$/);
  });

  it('names a bucket and a gateway that are asked', async () => {
    const [port = 0] = await freePorts(1);
    const bucket = { STORAGE_URL: 's3://sounds', S3_ENDPOINT: `http://127.0.0.1:${port}` };
    const credentials = { S3_ACCESS_KEY_ID: 'somebody', S3_SECRET_ACCESS_KEY: 'something' };
    const away = await diagnose({ ...bucket, ...credentials, GATEWAY_URL: `http://127.0.0.1:${port}` });
    expect(away.faults).toEqual([
      expect.stringMatching(/^Storage: .*bucket "sounds".*cannot be reached.*S3_ENDPOINT/),
      expect.stringMatching(/^Gateway: .*cannot be reached \(ECONNREFUSED\)/),
    ]);
    expect(away.of('Storage')[0]?.command).toBe(
      `aws s3 ls s3://sounds --region us-east-1 --endpoint-url http://127.0.0.1:${port}`,
    );
  });
});

describe('the transcriber', () => {
  const TRANSCRIBER_API_KEY = 'sk-canary-of-the-transcriber';
  /** Answers /v1/models so; resolves with TRANSCRIBER_URL. */
  async function transcriber(status: (authorization: string | undefined) => number): Promise<string> {
    const server = createServer(({ url, headers }, response) =>
      response.writeHead(url === '/v1/models' ? status(headers.authorization) : 500).end(),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  it('is asked with its key: any answer will do but a refusal of that', async () => {
    const knows = await transcriber((key) => (key === `Bearer ${TRANSCRIBER_API_KEY}` ? 200 : 401));
    const listless = await transcriber(() => 404);
    const refuses = await transcriber(() => 403);
    const [known, noKey, noList, refused] = await Promise.all([
      diagnose({ TRANSCRIBER_URL: knows, TRANSCRIBER_API_KEY }),
      diagnose({ TRANSCRIBER_URL: knows }),
      diagnose({ TRANSCRIBER_URL: listless, TRANSCRIBER_API_KEY }),
      diagnose({ TRANSCRIBER_URL: refuses, TRANSCRIBER_API_KEY }),
    ]);
    expect(known.of('Transcriber')).toEqual([
      { check: 'Transcriber', verdict: 'ok', found: `TRANSCRIBER_URL=${knows} answers (HTTP 200)` },
    ]);
    expect(noList.of('Transcriber')).toMatchObject([{ verdict: 'ok' }]);
    expect([...noKey.faults, ...refused.faults]).toEqual([
      `Transcriber: TRANSCRIBER_URL=${knows} rejects the key (HTTP 401)`,
      `Transcriber: TRANSCRIBER_URL=${refuses} rejects the key (HTTP 403)`,
    ]);
    const told = refused.of('Transcriber');
    expect(told).toMatchObject([
      { remedy: 'correct TRANSCRIBER_API_KEY', command: expect.stringContaining('$TRANSCRIBER_API_KEY') },
    ]);
    expect(JSON.stringify([...told, ...known.of('Transcriber')])).not.toContain(TRANSCRIBER_API_KEY);
  });

  it('that is away is a fault; where there is none nothing is said of it', async () => {
    const [port = 0] = await freePorts(1);
    const [away, none] = await Promise.all([
      diagnose({ TRANSCRIBER_URL: `http://127.0.0.1:${port}/v1` }),
      diagnose(),
    ]);
    expect(away.faults).toEqual([
      expect.stringMatching(/^Transcriber: .*cannot be reached \(ECONNREFUSED\)/),
    ]);
    expect(none.of('Transcriber')).toEqual([]);
  });
});

describe('what is printed', () => {
  it('is a plain line for each check in a pipe, marks on a terminal; an unknown option is wrong usage', {
    tags: 'python3',
  }, async () => {
    const plain = await doctor([]);
    expect(plain.code).toBe(0);
    expect(plain.output).toMatch(/^ok {7}Node {11}24\.\d+\.\d+, runs TypeScript directly$/m);
    expect(plain.output).toMatch(/\n\n0 faults, 0 warnings\n$/);
    expect(plain.output).not.toContain('\u001b');
    const [python, script] = ['python3', 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)'];
    const shown = await doctor([], { ADMIN_KEY: 'short', TERM: 'xterm' }, [python, '-c', script]);
    expect(shown.code).toBe(1);
    expect(shown.output).toContain('\u001b[31m✘\u001b[39m  Configuration  ADMIN_KEY: must have at least 16');
    expect(shown.output).toContain('\u001b[32m✔\u001b[39m  Node');
    expect((await doctor(['--jsno'])).code).toBe(2);
  });
});
