/** A gateway with a bot, on a Redis of the test's own and a Bot API server that a test tells what happens. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { type FeedEvent, followFeed } from '../feed.ts';
import {
  type Answer,
  type GatewaySetting,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from '../gateway-fixture.ts';
import { type FakeBotApi, type FakeChat, type FakeUser, startFakeBotApi } from './fake-bot-api.ts';

const user = (id: number, first_name: string): FakeUser => ({ id, is_bot: false, first_name });
export const ada = user(501, 'Ada');
export const hedy = user(502, 'Hedy');

export interface TelegramUnderTest {
  readonly api: FakeBotApi;
  readonly gateway: TestGateway;
  readonly redis: TestRedis;
  readonly folder: string;
  /** A voice note of one second. */
  readonly note: Buffer;
  /** Ada's chat with the bot, and a group that she owns. */
  readonly adasChat: FakeChat;
  readonly family: FakeChat;
  readonly events: readonly FeedEvent[];
  /** All that the gateway has logged. */
  readonly logged: readonly string[];
  setting(): GatewaySetting;
  /** Sends the note by multipart; further fields go along. */
  voice(
    number: number | string,
    fields?: Record<string, unknown>,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** The first event that fits, once it has come. */
  event(what: string, wanted: (event: FeedEvent) => boolean): Promise<FeedEvent>;
  close(): Promise<void>;
}

export async function startTelegram(
  more: Partial<GatewaySetting> = {},
  allow = '',
): Promise<TelegramUnderTest> {
  const [redis, folder, api] = await Promise.all([startTestRedis(), makeFolder(), startFakeBotApi()]);
  await makeTone(join(folder.path, 'note.ogg'), 1);
  const note = await readFile(join(folder.path, 'note.ogg'));
  const logged: string[] = [];
  const setting = (): GatewaySetting => ({
    log: { write: (line) => void logged.push(line) },
    ...{
      redisUrl: redis.url,
      dataDir: folder.path,
      telegramUrl: api.url,
      outboundAllow: [api.allow, allow].join(),
    },
    // On a machine that is busy with other tests, too.
    election: { timing: { leaseMs: 120_000 } },
    ...more,
  });
  const gateway = await startTestGateway(setting());
  const events: FeedEvent[] = [];
  const stopFeed = await followFeed(gateway.url, (event) => events.push(event));
  return {
    ...{ api, gateway, redis, folder: folder.path, note, events, logged, setting },
    adasChat: api.person(ada.id, ada.first_name),
    family: api.group(-4001, 'Family', {
      administrators: [
        { status: 'creator', user: ada },
        { status: 'administrator', user: api.bot },
      ],
    }),
    voice: (number, fields = {}, headers = {}) => {
      const form = new FormData();
      for (const [name, value] of Object.entries({ number, ...fields })) {
        form.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
      }
      form.append('file', new File([new Uint8Array(note)], 'note.ogg', { type: 'audio/ogg' }));
      return gateway.call('POST', '/message/sendMessengerAudio/bot', form, headers);
    },
    event: (what, wanted) => until(what, () => events.find(wanted)),
    async close() {
      stopFeed();
      await gateway.close();
      await api.close();
      await redis.close();
      await folder.remove();
    },
  };
}

interface Bot {
  readonly gateway: Pick<TestGateway, 'call'>;
}

/** Creates the instance `bot`. @returns once it is open */
export async function createBot({ api, gateway }: Bot & { api: FakeBotApi }, name = 'bot'): Promise<Answer> {
  const created = await gateway.call('POST', '/instance/create', {
    instanceName: name,
    transport: 'telegram',
    connection: { botToken: api.token },
  });
  await untilState({ gateway }, 'open', name);
  return created;
}

export function untilState({ gateway }: Bot, wanted: string, name = 'bot'): Promise<{ reason?: string }> {
  return until(`${name} is ${wanted}`, async () => {
    const { body } = await gateway.call('GET', `/instance/connectionState/${name}`);
    return body.instance?.state === wanted && body.instance;
  });
}
