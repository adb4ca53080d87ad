/** `keys pause`, `stop` and `resume` beside a running service: what a paused key may still do, and what becomes of its jobs. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client } from 'soundpost-testing/client';
import { ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand } from '../command.ts';

let home: ServiceHome;
let slow: Server;
let api = '';
let url = '';
const asked: string[] = [];

beforeAll(async () => {
  // Sends a file for hours, quickly enough not to be given up; one that stands still would be.
  slow = createServer(({ url: path = '' }, response) => {
    asked.push(path);
    response.writeHead(200, { 'content-length': 100_000_000 }).write('begun');
    const dripping = setInterval(() => response.write(Buffer.alloc(20_000)), 1000);
    response.once('close', () => clearInterval(dripping));
  }).listen(0, '127.0.0.1');
  await once(slow, 'listening');
  const { port } = slow.address() as AddressInfo;
  url = `http://127.0.0.1:${port}`;
  home = await ServiceHome.make({
    OUTBOUND_ALLOW: `127.0.0.1:${port}`,
    WORKER_CONCURRENCY: '1',
    DOWNLOADS_AHEAD: '0',
  });
  ({ api } = await home.serve());
}, 120_000);
afterAll(async () => {
  slow.closeAllConnections();
  await home.remove();
});

const command = (...args: readonly string[]) =>
  runCommand(['keys', ...args], { DATA_DIR: join(home.folder, 'data'), REDIS_URL: '' });
/** What it says, without hints. */
const keys = async (...args: readonly string[]): Promise<string> => {
  const { said } = await command(...args);
  return said
    .split('\n')
    .filter((line) => !line.startsWith('soundpost:'))
    .join('\n');
};
const statusOf = async (client: Client, jobId: string): Promise<string> => {
  const { body } = await client.call('GET', `/v1/jobs/${jobId}`);
  return body.data.status;
};

it('a stopped key only reads and removes; what runs is cancelled, and what waits begins when it is resumed', async () => {
  const key = await keys('create', '--name', 'guest');
  const id = key.split('_')[1] ?? '';
  const client = new Client(api, key);
  const job = (path: string) => ({
    source: { type: 'url', url: `${url}${path}` },
    output: { format: 'mp3' },
  });
  const running = await client.submit(job('/running'));
  const waiting = await client.submit(job('/waiting'));
  await until('the first one runs', () => asked.includes('/running'));

  expect(await keys('pause', id)).toBe(`paused ${id}; resume it with "keys resume ${id}"`);
  const refused = await client.call('POST', '/v1/extract', job('/later'));
  expect([refused.status, refused.body.error.code]).toEqual([403, 'FORBIDDEN']);
  expect(refused.body.error.message).toContain('this key is paused');
  expect(await statusOf(client, running)).toBe('processing');
  expect(await keys('list')).toContain('paused');

  expect(await keys('stop', id)).toBe(
    `paused ${id} and cancelled 1 running job; resume it with "keys resume ${id}"`,
  );
  const ended = await client.ended(running);
  expect(ended.error?.code ?? ended).toBe('JOB_CANCELLED');
  // Its place is free, and the other one does not take it: a look is enough, since it would begin within milliseconds.
  const other = new Client(api, await keys('create', '--name', 'other'));
  await other.submit(job('/other'));
  await until('the job of another key runs', () => asked.includes('/other'));
  expect(asked).not.toContain('/waiting');

  expect(await keys('resume', id)).toBe(`resumed ${id}; its jobs start within 10 seconds`);
  for (const jobId of (await other.call('GET', '/v1/jobs')).body.data.jobs.map(
    ({ jobId }: { jobId: string }) => jobId,
  )) {
    await other.call('DELETE', `/v1/jobs/${jobId}`);
  }
  await until('the one that waited runs', () => asked.includes('/waiting'), 30_000);
  expect((await client.call('DELETE', `/v1/jobs/${waiting}`)).status).toBe(200);
});

it('an id that is no key is said to be none', async () => {
  expect(await command('pause', 'nobody00')).toEqual({
    code: 2,
    said: expect.stringContaining('no such key: nobody00'),
  });
});
