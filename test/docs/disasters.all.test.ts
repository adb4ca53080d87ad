/**
 * Each disaster, made on a real service, and then the way out of it: the commands of docs/how-to/disasters.md, word for word. And what
 * saves from some of them: those of docs/how-to/backup.md.
 */
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { S3Bucket } from 'soundpost-kit/storage/s3-bucket';
import { Client } from 'soundpost-testing/client';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { freePort } from 'soundpost-testing/ports';
import { spawnRedis, startTestRedis } from 'soundpost-testing/redis-server';
import { bucketOptions } from 'soundpost-testing/s3/s3-fixture';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { type Environment, type RunningProcess, startProcess } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { jobKey } from '../jobs/bullmq-keys.ts';
import { runs } from './command-blocks.ts';
import { type CodeBlock, codeBlocksIn, projectFolder, readPage } from './markdown.ts';

const PAGE = 'docs/how-to/disasters.md';
const BACKUP_PAGE = 'docs/how-to/backup.md';
const SECRET_KEY = 'a secret of the disasters, of 32 bytes or more';
const STARTS_WITHIN_MS = 120_000;
const WITHIN_MS = 600_000;

let folder = '';
let environment: Environment = {};
let server: RunningProcess | undefined;
let api = '';
let key = '';
/** All that the blocks printed. */
let printed = '';
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-disaster-'));
  printed = '';
  environment = { API_PORT: '0', GATEWAY_PORT: '0', WORKER_PORT: '0', LOG_LEVEL: 'silent', CONSOLE: 'off' };
  await mkdir(join(folder, 'script'));
  for (const [name, more] of [
    ['soundpost', ''],
    ['server', ' serve'],
  ]) {
    // Without bootstrap: it would ask the package managers each time.
    const main = `exec node '${join(projectFolder, 'src/main.ts')}'${more} "$@"`;
    await writeFile(join(folder, `script/${name}`), `#!/bin/sh\n${main}\n`, { mode: 0o755 });
  }
});
afterEach(async () => {
  await stop();
  for (const close of closing.splice(0).reverse()) await close();
  await rm(folder, { recursive: true });
});

function bash(script: string): RunningProcess {
  return startProcess(['bash', '-c', script], environment, folder);
}

async function start(command = 'script/server'): Promise<void> {
  const started = bash(`exec env ${command}`);
  server = started;
  const ended = started.exited.then(() => {
    throw new Error(`${command} ended: ${started.output()}`);
  });
  const said = until(
    `${command} serves`,
    () => /^Inbox/m.test(started.output()) && /^API\s+(http\S+)/m.exec(started.output()),
    STARTS_WITHIN_MS,
  );
  // Its end comes later in any case.
  ended.catch(() => undefined);
  [, api = ''] = await Promise.race([said, ended]);
  key = /^API key {2}(sp_\w+)/m.exec(started.output())?.[1] ?? key;
}

async function stop(): Promise<void> {
  server?.signal('SIGTERM');
  await server?.exited;
  server = undefined;
}

async function job(options: object = {}): Promise<string> {
  const client = new Client(api, key);
  const form = new FormData();
  const sample = await readFile(join(projectFolder, 'examples/sample.mp4'));
  form.append('file', new Blob([new Uint8Array(sample)]), 'sample.mp4');
  form.append('request', JSON.stringify({ output: { format: 'mp3' }, ...options }));
  const { body } = await client.call('POST', '/v1/extract', form);
  const { jobId } = body.data;
  await client.completed(jobId);
  return jobId;
}

/** A run of the service with a job. */
async function lived(): Promise<string> {
  await start();
  const jobId = await job();
  await stop();
  return jobId;
}

const answerTo = async (path: string): Promise<number> => (await new Client(api, key).bytes(path)).status;

/** What differs from run to run blanked. */
function masked(text: string): string {
  return text
    .replaceAll(folder, '/srv/soundpost')
    .replaceAll(/\b[0-9a-f]{8}\b/g, '…')
    .replaceAll(/renewal \d+; there \d+/g, 'renewal N; there N')
    .replaceAll(/aof\.\d+\.incr/g, 'aof.N.incr')
    .trim();
}

/** Runs the section's blocks in their order. */
async function follow(heading: string, page = PAGE): Promise<void> {
  const section = readPage(page)
    .split(/^## /m)
    .find((text) => text.startsWith(`${heading}\n`));
  const blocks = codeBlocksIn(section ?? '').filter(runs);
  expect(blocks).not.toEqual([]);
  for (const block of blocks) await step(block);
}

async function step({ mark, text }: CodeBlock): Promise<void> {
  if (mark === 'runs as the service') {
    await start(text.trim());
    return;
  }
  if (mark === 'runs as shown') {
    const [, command = '', shown = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(text) ?? [];
    const refused = bash(command);
    expect(await refused.exited).toBe(/did not start/.test(shown) ? 1 : 2);
    // The page cuts a message off where it begins to say what the steps say.
    const [beginning = ''] = masked(shown).split(/ …$/);
    expect(masked(refused.output()).slice(0, beginning.length)).toBe(beginning);
    return;
  }
  const done = bash(`set -euo pipefail\n${text}`);
  expect(await done.exited, done.output()).toBe(0);
  printed += done.output();
}

/** Once adopted, it is for good. */
async function startsAnew(): Promise<void> {
  await stop();
  await start();
}

async function ownRedis(): Promise<void> {
  const redis = await startTestRedis();
  closing.push(() => redis.close());
  environment = { ...environment, REDIS_URL: redis.url, SECRET_KEY };
}

const data = (...names: string[]): string => join(folder, 'data', ...names);

it(
  'Redis is lost',
  async () => {
    const lost = await lived();
    await rm(data('redis'), { recursive: true });
    await follow('Redis is lost');
    expect(printed).toMatch(new RegExp(`files in files/ without a record: 1 .*files/${lost}/`));
    expect(await answerTo(`/v1/jobs/${lost}`)).toBe(404);
    await startsAnew();
    expect(await answerTo(`/v1/jobs/${await job()}`)).toBe(200);
  },
  WITHIN_MS,
);

it(
  'Redis is from yesterday',
  async () => {
    const kept = await lived();
    await cp(data('redis'), join(folder, 'yesterday'), { recursive: true });
    const lost = await lived();
    await rm(data('redis'), { recursive: true });
    await rename(join(folder, 'yesterday'), data('redis'));
    await follow('Redis is from yesterday');
    await startsAnew();
    expect(await answerTo(`/v1/download/${kept}`)).toBe(200);
    expect(await answerTo(`/v1/jobs/${lost}`)).toBe(404);
    expect(await answerTo(`/v1/jobs/${await job()}`)).toBe(200);
  },
  WITHIN_MS,
);

it(
  'Redis’ file is damaged in the middle',
  async () => {
    await lived();
    const folderOfFile = data('redis', 'appendonlydir');
    const name = (await readdir(folderOfFile)).find((one) => one.endsWith('.incr.aof')) ?? '';
    const file = await readFile(join(folderOfFile, name));
    await writeFile(
      join(folderOfFile, name),
      Buffer.concat([file.subarray(0, file.length / 2), file.subarray(file.length / 2 + 100)]),
    );
    const doctor = bash('script/soundpost doctor');
    expect(await doctor.exited).toBe(1);
    expect(doctor.output()).toContain(
      `redis-check-aof --fix ${data('redis/appendonlydir/appendonly.aof.manifest')}`,
    );
    await follow('Redis’ file is damaged'.replace('’', "'"));
    await startsAnew();
    expect(await answerTo(`/v1/jobs/${await job()}`)).toBe(200);
  },
  WITHIN_MS,
);

it(
  'the data folder has moved',
  async () => {
    await ownRedis();
    const kept = await lived();
    await rename(data(), join(folder, 'moved'));
    await follow('The data folder has moved');
    expect(await answerTo(`/v1/download/${kept}`)).toBe(200);
  },
  WITHIN_MS,
);

it(
  'the data folder is lost',
  async () => {
    await ownRedis();
    const kept = await lived();
    await cp(data(), join(folder, 'backup'), { recursive: true });
    const lost = await lived();
    await rm(data(), { recursive: true });
    const refused = bash('script/server');
    expect(await refused.exited).toBe(2);
    expect(refused.output()).toMatch(/^soundpost: Redis knows results \(mark \w{8}\) that are not in/m);
    await rm(data(), { recursive: true, force: true });
    await follow('The data folder is lost');
    await startsAnew();
    expect(await answerTo(`/v1/download/${kept}`)).toBe(200);
    expect(await answerTo(`/v1/jobs/${lost}`)).toBe(200);
    expect(await answerTo(`/v1/download/${lost}`)).toBe(410);
  },
  WITHIN_MS,
);

it(
  'the bucket is empty',
  async () => {
    await ownRedis();
    const s3 = await S3Server.start();
    closing.push(() => s3.close());
    environment = { ...environment, ...s3.environment('') };
    const lost = await lived();
    const bucket = new S3Bucket({ ...bucketOptions(s3), prefix: '' });
    for (const name of s3.store.keys()) await bucket.remove(name);
    bucket.close();
    const refused = bash('script/server');
    expect(await refused.exited).toBe(2);
    expect(refused.output()).toMatch(
      /^soundpost: Redis knows results .* that are not in s3:\/\/soundpost-test/m,
    );
    await follow('The bucket is empty');
    await startsAnew();
    expect(await answerTo(`/v1/download/${lost}`)).toBe(410);
    expect(await answerTo(`/v1/download/${await job()}`)).toBe(200);
  },
  WITHIN_MS,
);

it(
  'SECRET_KEY is lost',
  async () => {
    const kept = await lived();
    await rm(data('secret-key'));
    const doctor = bash('script/soundpost doctor');
    expect(await doctor.exited).toBe(1);
    expect(doctor.output()).toMatch(/^fault +Secret +SECRET_KEY is not set and/m);
    await follow('SECRET_KEY is lost');
    expect(await answerTo(`/v1/jobs/${kept}`)).toBe(401);
    key = /^sp_\w+$/m.exec(printed)?.[0] ?? '';
    expect(await answerTo(`/v1/download/${kept}`)).toBe(200);
  },
  WITHIN_MS,
);

it(
  'one record cannot be read',
  async () => {
    await ownRedis();
    await start();
    const [damaged, kept] = [await job(), await job()];
    const redis = connectPatiently(environment.REDIS_URL ?? '');
    closing.push(async () => redis.disconnect());
    await redis.hset(jobKey('extract', damaged), 'data', '{"version":1,"ten');
    const list = async () => (await new Client(api, key).call('GET', '/v1/jobs')).body.data.jobs;
    expect(await list()).toMatchObject([
      { jobId: kept, status: 'completed' },
      { jobId: damaged, status: 'failed', error: { message: expect.stringContaining('cannot be read') } },
    ]);
    environment = { ...environment, API: api, KEY: key, JOB: damaged };
    await follow('One record cannot be read');
    expect(await list()).toMatchObject([{ jobId: kept }]);
    expect(await answerTo(`/v1/jobs/${damaged}`)).toBe(404);
    expect(await answerTo(`/v1/download/${kept}`)).toBe(200);
  },
  WITHIN_MS,
);

/** What was posted, by path: each answer is what `answers` says of the path. */
async function receiver(answers: Readonly<Record<string, number>>) {
  const posted: string[] = [];
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const { url: path = '' } = request;
      posted.push(`${path} ${request.headers['webhook-id']}`);
      response.writeHead(answers[path] ?? 500).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => server.close());
  const { port } = server.address() as AddressInfo;
  environment = { ...environment, OUTBOUND_ALLOW: `127.0.0.1:${port}` };
  return { posted, url: (path: string) => `http://127.0.0.1:${port}${path}` };
}

/** A Redis at an address that stays, over a folder. */
async function redisOver(dir: string, port: number): Promise<() => Promise<void>> {
  await mkdir(dir, { recursive: true });
  const { end } = await spawnRedis([
    '--port',
    String(port),
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'yes',
  ]);
  return () => end('SIGTERM');
}

const states = async (jobId: string): Promise<unknown> => {
  const { body } = await new Client(api, key).call('GET', `/v1/jobs/${jobId}/deliveries`);
  return body.data.deliveries.map(({ status, attempts }: { status: string; attempts: unknown[] }) => [
    status,
    attempts.length,
  ]);
};

/** Lives, is backed up, loses everything, and is restored; the way between is the caller's. */
async function restored(backUp: () => Promise<void>, restore: () => Promise<void>): Promise<void> {
  const answers: Record<string, number> = { '/done': 200, '/pending': 503 };
  const { posted, url } = await receiver(answers);
  // Long enough that the service has stopped before the second attempt.
  environment = { ...environment, WEBHOOK_SCHEDULE_SECONDS: '0,20' };
  await start();
  const done = await job({ options: { webhook: url('/done') } });
  const before = await new Client(api, key).bytes(`/v1/download/${done}`);
  const pending = await job({ options: { webhook: url('/pending') } });
  await until('both were posted once', () => posted.length === 2);
  await until(
    'the attempts are noted',
    async () => [await states(done), await states(pending)].flat(2).join() === 'delivered,1,pending,1',
  );
  await stop();
  await backUp();
  await rm(data(), { recursive: true });
  answers['/pending'] = 200;
  await restore();
  await until(
    'the pending one is delivered',
    async () => String(await states(pending)) === 'delivered,2',
    STARTS_WITHIN_MS,
  );
  expect(await states(done)).toEqual([['delivered', 1]]);
  expect(posted).toHaveLength(3);
  expect(posted[2]).toBe(posted[1]);
  // The key works, and so does what it opens.
  const after = await new Client(api, key).bytes(`/v1/download/${done}`);
  expect([after.status, after.bytes]).toEqual([200, before.bytes]);
  expect(await answerTo(`/v1/jobs/${await job()}`)).toBe(200);
}

it(
  'one machine, backed up and restored into an empty place',
  () =>
    restored(
      () => follow('Back up one machine', BACKUP_PAGE),
      () => follow('Restore one machine', BACKUP_PAGE),
    ),
  WITHIN_MS,
);

it(
  'one with a Redis of its own, backed up and restored into an empty place',
  async () => {
    const port = await freePort();
    const [old, empty] = [join(folder, 'redis'), join(folder, 'new-redis')];
    environment = { ...environment, REDIS_URL: `redis://127.0.0.1:${port}`, REDIS_DIR: empty, SECRET_KEY };
    let close = await redisOver(old, port);
    closing.push(() => close());
    await restored(
      async () => {
        await follow('Back up a Redis of your own', BACKUP_PAGE);
        await follow('Back up one machine', BACKUP_PAGE);
        await close();
        await rm(old, { recursive: true });
        await mkdir(empty);
      },
      async () => {
        await follow('Restore a Redis of your own', BACKUP_PAGE);
        close = await redisOver(empty, port);
        await follow('Restore one machine', BACKUP_PAGE);
      },
    );
  },
  WITHIN_MS,
);
