import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { EVENT_STREAM } from 'soundpost-chat/event-stream';
import { GatewayEvent, gatewayEventData } from 'soundpost-contract/gateway-events';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { receivedBody } from 'soundpost-testing/received-body';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import {
  ada,
  eventually,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

const EventSchema = GatewayEvent.extend({ data: gatewayEventData['messages.update'] });
type MessageUpdateEvent = z.infer<typeof EventSchema>;

const SECRET = `whsec_${Buffer.alloc(24, 5).toString('base64')}`;
const SEND = '/message/sendMessengerAudio/main';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let receiver: Server;
let url: string;
let audio: string;
/** What the receiver got, and what it shall answer next; 204 when the list is empty. */
const received: { headers: IncomingHttpHeaders; text: string }[] = [];
const answers: number[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  receiver = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const text = body.toString();
    received.push({ headers: request.headers, text });
    response.writeHead(answers.shift() ?? 204).end();
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks/gateway`;
  gateway = await start();
});

afterAll(async () => {
  await gateway.close();
  receiver.close();
  await redis.close();
  await folder.remove();
});

beforeEach(() => {
  received.length = 0;
  answers.length = 0;
});

const start = (): Promise<TestGateway> =>
  startTestGateway({ redisUrl: redis.url, dataDir: folder.path, events: { url, secret: SECRET } });

const statusesOf = (id: string): string[] =>
  received
    .map(({ text }): MessageUpdateEvent => JSON.parse(text))
    .filter(({ data }) => data.key.id === id)
    .map(({ data }) => data.status);

const posted = (id: string, last: string): Promise<string[]> =>
  eventually(
    async () => statusesOf(id),
    (statuses) => statuses.at(-1) === last,
  );

describe('messages.update', () => {
  it('is posted, signed, for every step of a message until it was played', async () => {
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio });
    const { id } = body.key;
    await posted(id, 'DELIVERY_ACK');
    await gateway.call('POST', `/inbox/api/instances/main/chats/${ada.jid}/opened`);
    await posted(id, 'READ');
    await gateway.call('POST', `/inbox/api/instances/main/chats/${ada.jid}/messages/${id}/played`);
    expect(await posted(id, 'PLAYED')).toEqual(['SERVER_ACK', 'DELIVERY_ACK', 'READ', 'PLAYED']);
    for (const { headers, text } of received) {
      const verified = new Webhook(SECRET).verify(text, headers as Record<string, string>);
      expect(EventSchema.parse(verified)).toMatchObject({
        event: 'messages.update',
        instance: 'main',
        data: { key: body.key },
        sender: expect.stringMatching(/^999\d+@people\.loopback$/),
      });
    }
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(received.length);
  });

  it('only moves forward: opening a chat again, or late, changes nothing', async () => {
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio });
    const { id } = body.key;
    await posted(id, 'DELIVERY_ACK');
    await gateway.call('POST', `/inbox/api/instances/main/chats/${ada.jid}/messages/${id}/played`);
    await posted(id, 'PLAYED');
    await gateway.call('POST', `/inbox/api/instances/main/chats/${ada.jid}/opened`);
    const { body: later } = await gateway.call('POST', SEND, { number: ada.number, audio });
    await posted(later.key.id, 'DELIVERY_ACK');
    expect(statusesOf(id)).toEqual(['SERVER_ACK', 'DELIVERY_ACK', 'PLAYED']);
  });

  it('is posted again, as the same event, until the receiver takes it', async () => {
    answers.push(500, 204);
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio });
    expect(await posted(body.key.id, 'DELIVERY_ACK')).toEqual(['SERVER_ACK', 'SERVER_ACK', 'DELIVERY_ACK']);
    const [first, second] = received;
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.text).toBe(first?.text);
  });

  it('that the receiver cannot read does not hold up the next one', async () => {
    answers.push(400);
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio });
    expect(await posted(body.key.id, 'DELIVERY_ACK')).toEqual(['SERVER_ACK', 'DELIVERY_ACK']);
  });

  it.each([
    [
      'of the next edition',
      ['version', '2', 'instanceId', 'a', 'event', 'messages.update', 'envelope', '{}'],
    ],
    ['that is damaged', ['event', 'messages.update']],
  ])('%s is passed over, and the next one is told', async (_which, fields) => {
    const direct = connectPatiently(redis.url);
    await direct.xadd(EVENT_STREAM, '*', ...fields);
    direct.disconnect();
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio });
    expect(await posted(body.key.id, 'DELIVERY_ACK')).toEqual(['SERVER_ACK', 'DELIVERY_ACK']);
  });

  it('of a gateway that stopped before it was taken is posted by the next one', async () => {
    answers.push(503);
    const { body } = await gateway.call('POST', SEND, { number: ada.number, audio });
    await posted(body.key.id, 'SERVER_ACK');
    await gateway.close();
    gateway = await start();
    const statuses = await posted(body.key.id, 'DELIVERY_ACK');
    // What was on its way when the gateway stopped is told once more.
    expect(statuses.join(' ')).toMatch(/^SERVER_ACK( SERVER_ACK){1,2}( DELIVERY_ACK){1,2}$/);
  });
});
