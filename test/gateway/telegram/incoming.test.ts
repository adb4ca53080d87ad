/** What people send to a bot, by long polling and by webhook, and how its connection ends. */
import { EventEmitter, once } from 'node:events';
import { truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import { receivedBody } from 'soundpost-testing/received-body';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { decrypted } from '../decrypted.ts';
import { ada, createBot, startTelegram, type TelegramUnderTest, untilState } from './telegram-fixture.ts';

let net: TelegramUnderTest;
/** Takes the events of the instance's webhook. */
const told = new EventEmitter();
const receiver = createServer(async (request, response) => {
  const body = await receivedBody(request);
  response.writeHead(204).end();
  told.emit('event', JSON.parse(String(body)));
});

beforeAll(async () => {
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  net = await startTelegram({}, `127.0.0.1:${(receiver.address() as AddressInfo).port}`);
  await createBot(net);
});

afterAll(async () => {
  expect(net.api.faults).toEqual([]);
  // The token is part of every address that the gateway calls.
  expect(net.logged.length).toBeGreaterThan(0);
  expect(net.logged.filter((line) => line.includes(net.api.secret))).toEqual([]);
  await net.close();
  receiver.close();
});

/** The event of a message that Ada says in her own chat. */
async function heard(content: Record<string, unknown>) {
  const id = net.api.say(net.adasChat, ada, content);
  const { envelope } = await net.event(
    'a message arrives',
    ({ event, envelope: { data } }) => event === 'messages.upsert' && data.key.id === `501_${id}`,
  );
  return envelope.data;
}

describe('long polling', () => {
  it('makes an event of a text, with its author', async () => {
    expect(await heard({ text: 'hello' })).toMatchObject({
      key: { remoteJid: '501@telegram', fromMe: false },
      pushName: 'Ada',
      message: { conversation: 'hello' },
    });
  });

  it('fetches a voice message, which can be heard', async () => {
    net.api.files.set('v1', { bytes: net.note });
    const { message } = await heard({ voice: { file_id: 'v1', duration: 1, file_size: net.note.length } });
    const { audioMessage } = message;
    const response = await fetch(`${net.gateway.url}${audioMessage.directPath}`);
    const file = Buffer.from(await response.arrayBuffer());
    expect(decrypted(file, audioMessage.mediaKey).fileSha256).toBe(audioMessage.fileSha256);
  });

  it.each([
    ['a video', { video: { file_id: 'm1', mime_type: 'video/mp4; x=1' }, caption: 'look' }],
    ['a document that says so', { document: { file_id: 'm1', mime_type: 'video/mp4' }, caption: 'look' }],
  ])('keeps %s as it is, with its caption', async (_, content) => {
    const bytes = Buffer.from('of a video nobody looks at the bytes');
    net.api.files.set('m1', { bytes });
    const { message, messageType } = await heard(content);
    expect(messageType).toBe('videoMessage');
    const { videoMessage } = message;
    expect(videoMessage).toMatchObject({ mimetype: 'video/mp4', caption: 'look' });
    const response = await fetch(`${net.gateway.url}${videoMessage.directPath}`);
    const file = Buffer.from(await response.arrayBuffer());
    expect(decrypted(file, videoMessage.mediaKey, 'Video').plain).toEqual(bytes);
  });

  it('puts a video into the event where the webhook asks for media', async () => {
    const bytes = Buffer.from('a video');
    net.api.files.set('m3', { bytes });
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
    const webhook = { url, base64: true, events: ['messages.upsert'] };
    await net.gateway.call('POST', '/webhook/set/bot', { webhook });
    const [[{ data }]] = await Promise.all([
      once(told, 'event'),
      heard({ video: { file_id: 'm3', mime_type: 'no\ntype' } }),
    ]);
    expect(data.message.videoMessage.mimetype).toBe('video/mp4');
    expect(Buffer.from(data.message.base64, 'base64')).toEqual(bytes);
    await net.gateway.call('POST', '/webhook/set/bot', { webhook: { ...webhook, enabled: false } });
  });

  it('tells of a picture its text alone, and that a video is too large', async () => {
    const picture = { document: { file_id: 'm2', mime_type: 'image/png' }, caption: 'a picture' };
    expect((await heard(picture)).message).toEqual({ conversation: 'a picture' });
    net.api.files.set('m2', { bytes: net.note, size: 31_000_000 });
    const { message } = await heard({ video: { file_id: 'm2', file_size: 31_000_000 } });
    expect(message.conversation).toMatch(/^\[A video of 31 MB: Telegram hands out 20 MB at most/);
  });

  it('says so when a recording is larger than Telegram hands out', async () => {
    net.api.files.set('v2', { bytes: net.note, size: 31_000_000 });
    const { message } = await heard({ video_note: { file_id: 'v2', length: 240, file_size: 31_000_000 } });
    expect(message.conversation).toMatch(/of 31 MB: Telegram hands out 20 MB at most/);
  });

  it('takes the absolute path that a local server answers', async () => {
    net.api.localFolder = net.folder;
    await writeFile(join(net.folder, 'v3'), net.note);
    net.api.files.set('v3', { bytes: Buffer.alloc(0) });
    const { message } = await heard({ audio: { file_id: 'v3', duration: 1 } });
    expect(message.audioMessage.seconds).toBe(1);
    // Of a local server files may have 2,000 MB: none is copied that the gateway would not take.
    await writeFile(join(net.folder, 'v4'), '');
    await truncate(join(net.folder, 'v4'), 101 * 1024 * 1024);
    net.api.files.set('v4', { bytes: Buffer.alloc(0) });
    const { message: huge } = await heard({ audio: { file_id: 'v4', duration: 1 } });
    expect(huge.conversation).toBe('[A recording: the gateway takes 100 MiB at most.]');
    net.api.localFolder = undefined;
  });

  it('confirms an update once it is stored, and skips one that it cannot read', async () => {
    net.api.update({ message: { odd: true } });
    await heard({ text: 'after the odd one' });
    await until('all are confirmed', () => net.api.pending === 0);
  });

  it('reports who comes and goes, and who becomes an admin', async () => {
    const change = (action: string) =>
      net.event(
        action,
        ({ event, envelope: { data } }) => event === 'group-participants.update' && data.action === action,
      );
    net.api.say(net.family, ada, { new_chat_members: [{ id: 777, is_bot: false, first_name: 'Joan' }] });
    expect((await change('add')).envelope.data).toMatchObject({
      id: '-4001@telegram',
      participants: ['777@telegram'],
    });
    net.api.update({
      chat_member: {
        chat: { id: -4001, type: 'group', title: 'Family' },
        from: ada,
        date: 1,
        old_chat_member: { status: 'member', user: { id: 777, is_bot: false, first_name: 'Joan' } },
        new_chat_member: { status: 'administrator', user: { id: 777, is_bot: false, first_name: 'Joan' } },
      },
    });
    expect((await change('promote')).envelope.data.author).toBe('501@telegram');
  });
});

describe('the connection', () => {
  it('closes with a sentence when another program polls, and opens again when it is told to', async () => {
    await until('the gateway polls', () => net.api.isPolled);
    net.api.interfere();
    const { reason } = await untilState(net, 'close');
    expect(reason).toMatch(/another program receives the updates of this bot/);
    await net.gateway.call('GET', '/instance/connect/bot');
    await untilState(net, 'open');
  });

  it('leaves the webhook of another program alone', async () => {
    await net.gateway.call('DELETE', '/instance/logout/bot');
    const foreign = { url: 'https://n8n.example/telegram', secret_token: 'x' };
    net.api.webhook = foreign;
    await net.gateway.call('GET', '/instance/connect/bot');
    expect((await untilState(net, 'close')).reason).toMatch(/by a webhook/);
    expect(net.api.webhook).toEqual(foreign);
    net.api.webhook = undefined;
    await net.gateway.call('GET', '/instance/connect/bot');
    await untilState(net, 'open');
  });

  it('closes when the token was revoked, and the send that met it says so', async () => {
    await until('the gateway polls', () => net.api.isPolled);
    net.api.isRevoked = true;
    const answer = await net.voice(ada.id);
    expect([answer.status, answer.body.response.message[0]]).toEqual([
      503,
      expect.stringMatching(/does not accept the bot token/),
    ]);
    expect((await untilState(net, 'close')).reason).toMatch(/@BotFather/);
    const asked = net.api.requests.length;
    expect((await net.voice(ada.id)).status).toBe(503);
    expect(net.api.requests).toHaveLength(asked);
    net.api.isRevoked = false;
  });
});

it('is gone once it is deleted, and asks Telegram nothing more', async () => {
  await net.gateway.call('GET', '/instance/connect/bot');
  await untilState(net, 'open');
  await until('the gateway polls', () => net.api.isPolled);
  expect((await net.gateway.call('DELETE', '/instance/delete/bot')).status).toBe(200);
  const asked = net.api.requests.length;
  await until('its end is told', () =>
    net.events.some(({ envelope: { data } }) => data.reason === 'logged out' && data.state === 'close'),
  );
  await until('the poll has ended', () => !net.api.isPolled);
  expect(net.api.requests).toHaveLength(asked);
});

it('is a webhook where the gateway has a public https address, and only Telegram may post to it', async () => {
  const open = await startTelegram({ publicUrl: 'https://gateway.example' });
  onTestFinished(() => open.close());
  const { api, gateway, adasChat } = open;
  await createBot(open);
  expect(api.webhook).toMatchObject({ max_connections: 1 });
  api.say(adasChat, ada, { text: 'by webhook' });
  expect(await api.post(gateway.url, 'a-guess')).toBe(403);
  expect(await api.post(gateway.url)).toBe(200);
  expect(api.pending).toBe(0);
  const { body } = await gateway.call('POST', '/chat/findChats/bot', { where: { remoteJid: '501' } });
  expect(body[0].lastMessage.message).toEqual({ conversation: 'by webhook' });
  await gateway.call('DELETE', '/instance/logout/bot');
  expect(api.webhook).toBeUndefined();
  expect(api.faults).toEqual([]);
});
