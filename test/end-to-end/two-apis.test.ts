/** Two processes of the API on one Redis and one folder are one API: whichever of them a request comes to. */

import { bestMs } from 'soundpost-testing/best-ms';
import { Client } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome } from 'soundpost-testing/service';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const READS = 20;

const job = { source: { type: 'url', url: 'http://127.0.0.1:9/talk.mp4' }, output: { format: 'mp3' } };
let redis: TestRedis;
let home: ServiceHome;
const bases: string[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret that two processes share, of 32 bytes or more',
    OUTBOUND_ALLOW: '127.0.0.1:9',
    RATE_READ_PER_MINUTE: String(READS),
  });
  for (let nth = 0; nth < 2; nth += 1) {
    bases.push(await home.start('api').says(/^API\s+(http\S+)/m));
  }
});
afterAll(async () => {
  await home.remove();
  await redis.close();
});

const newKey = async (): Promise<string> =>
  home.run([process.execPath, 'src/main.ts', 'keys', 'create', '--name', 'two']).says(/(sp_\w+)/);
const clientsOf = (key: string): Client[] => bases.map((base) => new Client(base, key));

describe('two processes of the API', () => {
  it('know the same jobs, and a watcher at one hears what was done at the other', async () => {
    const key = await newKey();
    const [here, there] = clientsOf(key);
    const heardAfterMs = async (): Promise<number> => {
      const jobId = (await here?.submit(job)) ?? '';
      const seen = await there?.call('GET', `/v1/status/${jobId}`);
      expect([seen?.status, seen?.body.data.status]).toEqual([200, 'queued']);

      const events = await fetch(`${bases[0]}/v1/jobs/${jobId}/events`, { headers: { 'X-API-Key': key } });
      const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
      expect((await reader?.read())?.value).toContain('"status":"queued"');
      const askedMs = performance.now();
      expect((await there?.call('DELETE', `/v1/jobs/${jobId}`))?.status).toBe(200);
      let heard = '';
      while (!heard.includes('JOB_CANCELLED')) {
        heard += (await reader?.read())?.value ?? expect.fail('the stream ended before it told the end');
      }
      const tookMs = performance.now() - askedMs;
      await reader?.cancel();
      return tookMs;
    };
    // Not by the look that follows every 5 s when a message was lost.
    expect(await bestMs(4000, heardAfterMs)).toBeLessThan(4000);
  });

  it('tell a watcher of all jobs at one of a job that the other accepts, within a second', async () => {
    const key = await newKey();
    const [, there] = clientsOf(key);
    const events = await fetch(`${bases[0]}/v1/events`, { headers: { 'X-API-Key': key } });
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toContain('event: reset');
    const toldAfterMs = async (): Promise<number> => {
      const jobId = (await there?.submit(job)) ?? '';
      const acceptedMs = performance.now();
      let heard = '';
      while (!heard.includes(jobId)) {
        heard += (await reader?.read())?.value ?? expect.fail('the stream ended');
      }
      return performance.now() - acceptedMs;
    };
    expect(await bestMs(1000, toldAfterMs)).toBeLessThan(1000);
    await reader?.cancel();
  });

  it('take from the same rate', async () => {
    const clients = clientsOf(await newKey());
    const statuses: number[] = [];
    for (let nth = 0; nth <= READS; nth += 1) {
      statuses.push((await clients[nth % 2]?.call('GET', '/v1/jobs'))?.status ?? 0);
    }
    expect(statuses).toEqual([...Array.from({ length: READS }, () => 200), 429]);
    expect((await clients[READS % 2]?.call('GET', '/v1/jobs'))?.status).toBe(429);
  });

  it('let nobody in with a key that was revoked beside them, from that moment', async () => {
    const key = await newKey();
    const clients = clientsOf(key);
    const ask = () =>
      Promise.all(clients.map(async (client) => (await client.call('GET', '/v1/jobs')).status));
    expect(await ask()).toEqual([200, 200]);
    const revoke = home.run([process.execPath, 'src/main.ts', 'keys', 'revoke', key.split('_')[1] ?? '']);
    expect(await revoke.exited).toBe(0);
    expect(await ask()).toEqual([401, 401]);
  });
});
