/** A gateway with an instance on the Cloud API, on a Redis of the test's own and a Graph API that a test steers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { followFeed } from '../feed.ts';
import {
  type Answer,
  type GatewaySetting,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from '../gateway-fixture.ts';
import { ACCESS_TOKEN, APP_SECRET, FakeGraph, numbers, VERIFY_TOKEN } from './fake-graph.ts';

export const ada = { number: '12025550101', jid: '12025550101@s.whatsapp.net', name: 'Ada' };
export const hedy = { number: '12025550102', jid: '12025550102@s.whatsapp.net', name: 'Hedy' };

/** An event as receivers get it. */
export interface CloudEvent {
  readonly event: string;
  readonly instance: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the fields that it expects, and fails where they are not
  readonly data: any;
}

export interface CloudUnderTest {
  readonly graph: FakeGraph;
  readonly gateway: TestGateway;
  readonly redis: Redis;
  /** A voice note of one second. */
  readonly note: Buffer;
  readonly events: CloudEvent[];
  setting(): GatewaySetting;
  call(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Answer>;
  voice(number: string, more?: object, headers?: Record<string, string>): Promise<Answer>;
  /** The event that fits, once it has come. */
  event(what: string, wanted: (event: CloudEvent) => boolean): Promise<CloudEvent>;
  close(): Promise<void>;
}

/** What `POST /instance/create` needs. */
export function account(instanceName: string, number = numbers.own, secret = APP_SECRET): object {
  return {
    instanceName,
    transport: 'whatsapp-cloud',
    connection: {
      phoneNumberId: number.phoneNumberId,
      accessToken: ACCESS_TOKEN,
      appSecret: secret,
      verifyToken: VERIFY_TOKEN,
    },
  };
}

export async function startCloud(more: Partial<GatewaySetting> = {}): Promise<CloudUnderTest> {
  const [server, folder, graph] = await Promise.all([
    startTestRedis(),
    makeFolder(),
    new FakeGraph().start(),
  ]);
  await makeTone(join(folder.path, 'note.ogg'), 1);
  const note = await readFile(join(folder.path, 'note.ogg'));
  const setting = (): GatewaySetting => ({
    ...{
      redisUrl: server.url,
      dataDir: folder.path,
      graphUrl: graph.url,
      outboundAllow: graph.outboundAllow,
    },
    sendsPerMinute: { 'whatsapp-cloud': 0 },
    ...more,
  });
  const gateway = await startTestGateway(setting());
  const events: CloudEvent[] = [];
  const stopFeed = await followFeed(gateway.url, ({ envelope }) => events.push(envelope));
  const event: CloudUnderTest['event'] = (what, wanted) => until(what, () => events.find(wanted));
  await gateway.call('POST', '/instance/create', account('shop'));
  await event(
    'the instance is open',
    ({ event, data }) => event === 'connection.update' && data.state === 'open',
  );
  graph.webhookUrl = `${gateway.url}/webhooks/whatsapp-cloud/shop`;
  const redis = connectPatiently(server.url);
  return {
    ...{ graph, gateway, redis, note, events, setting, event, call: gateway.call },
    voice: (number, fields = {}, headers = {}) =>
      gateway.call(
        'POST',
        '/message/sendMessengerAudio/shop',
        { number, audio: note.toString('base64'), ...fields },
        headers,
      ),
    async close() {
      stopFeed();
      await gateway.close();
      await graph.close();
      await closeRedis(redis);
      await server.close();
      await folder.remove();
    },
  };
}
