/** Events that a gateway of the first edition had on its way when it stopped, laid down in Redis as it did (f8bc16f). */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { receivedBody } from '../received-body.ts';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { until } from '../until.ts';
import { makeFolder, startTestGateway, type TestGateway } from './gateway-fixture.ts';

const KEY = '{soundpost}:gateway';
const SECRET = `whsec_${Buffer.alloc(24, 5).toString('base64')}`;

let redis: TestRedis;
let client: Redis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let receiver: Server;
let base: string;
let gateway: TestGateway | undefined;
let instanceId: string;
/** `<path> <what happened>`, in the order in which it came. */
let told: string[];
let webhookIds: (string | undefined)[];

beforeEach(async () => {
  redis = await startTestRedis();
  client = new Redis(redis.socketPath);
  folder = await makeFolder();
  told = [];
  webhookIds = [];
  receiver = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const text = body.toString();
    told.push(`${request.url} ${JSON.parse(text).data}`);
    webhookIds.push(request.headers['webhook-id']?.toString());
    response.writeHead(204).end();
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  base = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  gateway = await start();
  const { body } = await gateway.call('POST', '/instance/create', {
    instanceName: 'one',
    webhook: { url: `http://${base}/hook`, events: ['messages.update', 'call'] },
  });
  instanceId = body.instance.instanceId;
  await gateway.close();
  gateway = undefined;
  await client.del(`${KEY}:event-cursor`, `${KEY}:events`);
});

afterEach(async () => {
  await gateway?.close();
  client.disconnect();
  receiver.close();
  await redis.close();
  await folder.remove();
});

const start = (): Promise<TestGateway> =>
  startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    outboundAllow: base,
    webhookSchedule: [0, 0.5, 1],
    events: { url: `http://${base}/relay`, secret: SECRET },
  });

const envelopeOf = (event: string, data: string): string => JSON.stringify({ event, instance: 'one', data });

async function append(data: string, event = 'messages.update'): Promise<string> {
  const envelope = envelopeOf(event, data);
  const fields = ['instanceId', instanceId, 'event', event, 'envelope', envelope];
  return (await client.xadd(`${KEY}:events`, 'MAXLEN', '~', 20_000, '*', ...fields)) ?? '';
}

/** What a process of the group was given; acknowledged where it was done with. */
async function give(group: string, count: number, acknowledged: readonly string[]): Promise<void> {
  const stream = `${KEY}:events`;
  await client.xgroup('CREATE', stream, group, '0').catch(() => undefined);
  await client.xreadgroup('GROUP', group, 'process', 'COUNT', count, 'STREAMS', stream, '>');
  await client.xack(stream, group, ...acknowledged, '0-1');
}

/** What the first edition had taken out of the stream, for the instance's webhook. */
async function keepDelivery(eventId: string, data: string, attempts: number, dueMs: number): Promise<void> {
  const envelope = envelopeOf('messages.update', data);
  const record = { eventId, instanceId, envelope, happenedAtMs: Number.parseInt(eventId, 10), attempts };
  await client.hset(`${KEY}:webhook-deliveries`, `${instanceId} ${eventId}`, JSON.stringify(record));
  await client.zadd(`${KEY}:webhook-due`, dueMs, `${instanceId} ${eventId}`);
}

const at = (path: string): string[] =>
  told.filter((one) => one.startsWith(`${path} `)).map((one) => one.slice(path.length + 1));

it('goes on where both of its readers had stopped: nothing is lost, doubled or out of order', async () => {
  const ids: string[] = [];
  for (const data of ['a', 'b', 'c', 'd', 'e']) ids.push(await append(data));
  const [a = '', b = '', c = ''] = ids;
  // Webhooks: a is delivered, b waits in the old structures, c was given to a process that died, d and e to nobody.
  await give('webhooks', 3, [a, b]);
  await keepDelivery(b, 'b', 0, Date.now() + 30_000);
  // Statuses: a and b are posted, c was being posted.
  await give('events-url', 3, [a, b]);
  gateway = await start();
  await until('all is told', () => at('/hook').length >= 4 && at('/relay').length >= 3);
  await append('f');
  await until('what came since is told', () => at('/hook').includes('f') && at('/relay').includes('f'));
  expect(at('/hook')).toEqual(['b', 'c', 'd', 'e', 'f']);
  expect(at('/relay')).toEqual(['c', 'd', 'e', 'f']);
  expect(webhookIds).toContain(`evt_${c}`);
  expect(await client.xinfo('GROUPS', `${KEY}:events`)).toEqual([]);
  expect(await client.exists(`${KEY}:webhook-due`, `${KEY}:webhook-deliveries`)).toBe(0);
});

it('makes the tries that a delivery has left, when they are due', async () => {
  const [twice, once] = [await append('tried twice'), await append('tried once')];
  await give('webhooks', 2, [twice, once]);
  // Long enough for a gateway that starts slowly to be there before.
  const dueMs = Date.now() + 5000;
  await keepDelivery(twice, 'tried twice', 2, dueMs);
  await keepDelivery(once, 'tried once', 1, Date.now());
  gateway = await start();
  const { call } = gateway;
  await until('both are told', () => at('/hook').length === 2);
  // It goes by Redis' clock, which a process knows to half a second where the answer took one.
  expect(Date.now()).toBeGreaterThanOrEqual(dueMs - 1000);
  expect(at('/hook')).toEqual(['tried once', 'tried twice']);
  await until('both are noted', async () => {
    const { deliveries } = (await call('GET', '/webhook/deliveries/one')).body;
    return (
      deliveries.length === 2 && deliveries.every(({ status }: { status: string }) => status === 'delivered')
    );
  });
});

it('begins with what happens from then on where there was none', async () => {
  await append('before');
  gateway = await start();
  await append('after');
  await until('it is told', () => at('/hook').length > 0 && at('/relay').length > 0);
  expect(told.toSorted()).toEqual(['/hook after', '/relay after']);
});

it('reads again what a reader had read that died before its cursor moved, and tells it once', async () => {
  gateway = await start();
  await append('a', 'call');
  await until('it is told', () => at('/hook').length === 1);
  const cursor = await until('the cursor has moved', async () => {
    const now = await client.get(`${KEY}:event-cursor`);
    return now !== '0-0' && now;
  });
  await gateway.close();
  await client.set(`${KEY}:event-cursor`, '0-0');
  gateway = await start();
  await append('b', 'call');
  await until('the next one is told', () => at('/hook').includes('b'));
  expect(at('/hook')).toEqual(['a', 'b']);
  expect(cursor).toMatch(/^\d+-\d+$/);
});
