/** What the loopback network does between instances, beyond what every network does. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FeedEvent, followFeed } from './feed.ts';
import {
  type Answer,
  ada,
  chatMessages,
  eventually,
  hedy,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audio: string;
let stopFeed: () => void;
const events: FeedEvent[] = [];
const jids: Record<string, string> = {};
const ids: Record<string, string> = {};

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  for (const name of ['paris', 'rome', 'oslo']) {
    await gateway.call('POST', '/instance/create', { instanceName: name });
  }
  const { body } = await gateway.call('GET', '/inbox/api/instances');
  for (const { name, ownJid, id } of body) {
    jids[name] = ownJid;
    ids[name] = id;
  }
  stopFeed = await followFeed(gateway.url, (event) => events.push(event));
});

afterAll(async () => {
  stopFeed();
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const jid = (name: string): string => jids[name] ?? '';
const send = (from: string, to: string, more: object = {}): Promise<Answer> =>
  gateway.call('POST', `/message/sendMessengerAudio/${from}`, { number: to, audio, ...more });
const messages = (instance: string, chat: string): Promise<Answer['body']> =>
  chatMessages(gateway, instance, chat);
const status = (instance: string, chat: string, id: string, wanted: string) =>
  eventually(
    async () => (await messages(instance, chat)).find(({ key }: Shown) => key.id === id)?.status,
    (found) => found === wanted,
  );
const set = (instance: string, settings: object) =>
  gateway.call('POST', `/settings/set/${instance}`, settings);
const told = (instance: string, event: string, wanted: (data: Answer['body']) => boolean) =>
  eventually(
    async () =>
      events.find(
        (one) => one.instanceId === ids[instance] && one.event === event && wanted(one.envelope.data),
      ),
    (found) => found !== undefined,
  );
const groupOf = async (instance: string): Promise<string> =>
  (await gateway.call('POST', `/chat/findContacts/${instance}`)).body.find(
    ({ isGroup }: { isGroup: boolean }) => isGroup,
  ).id;

interface Shown {
  readonly key: { readonly id: string; readonly fromMe: boolean };
  readonly status: string;
}

describe('two instances', () => {
  it('talk to each other: what one sends arrives at the other, and its ticks come back', async () => {
    const { body } = await send('paris', jid('rome'));
    await status('paris', jid('rome'), body.key.id, 'DELIVERY_ACK');
    const [arrived] = await messages('rome', jid('paris'));
    expect(arrived).toMatchObject({
      key: { remoteJid: jid('paris'), fromMe: false, id: body.key.id },
      authorName: 'paris',
      message: body.message,
    });
    await gateway.call('POST', `/inbox/api/instances/rome/chats/${jid('paris')}/opened`);
    await status('paris', jid('rome'), body.key.id, 'READ');
    await gateway.call(
      'POST',
      `/inbox/api/instances/rome/chats/${jid('paris')}/messages/${body.key.id}/played`,
    );
    await status('paris', jid('rome'), body.key.id, 'PLAYED');
  });

  it('see each other write, record, come and go', async () => {
    await gateway.call('POST', '/chat/sendPresence/paris', {
      number: jid('rome'),
      presence: 'recording',
      delay: 50,
    });
    const shows = (presence: string) =>
      told(
        'rome',
        'presence.update',
        ({ id, presences }) => id === jid('paris') && presences[jid('paris')]?.lastKnownPresence === presence,
      );
    await shows('recording');
    await shows('paused');
    await set('paris', { alwaysOnline: true });
    await shows('available');
    await set('paris', { alwaysOnline: false });
    await shows('unavailable');
  });

  it('a change of a message arrives at the other', async () => {
    const { body } = await send('paris', jid('rome'));
    await status('paris', jid('rome'), body.key.id, 'DELIVERY_ACK');
    await gateway.call('POST', '/chat/updateMessage/paris', {
      number: jid('rome'),
      key: body.key,
      text: 'A tone',
    });
    await eventually(
      async () => (await messages('rome', jid('paris'))).at(-1),
      (last) => last?.message.audioMessage.caption === 'A tone' && last.edited,
    );
    await told(
      'rome',
      'messages.update',
      ({ key, message }) => key.id === body.key.id && message?.audioMessage.caption === 'A tone',
    );
    // Whoever received it cannot change it.
    const foreign = await gateway.call('POST', '/chat/updateMessage/rome', {
      number: jid('paris'),
      key: { ...body.key, remoteJid: jid('paris') },
      text: 'x',
    });
    expect([foreign.status, foreign.body.code]).toEqual([400, 'not_editable']);
  });

  it('with readMessages, what arrives is read at once', async () => {
    const privacy = async () => (await gateway.call('GET', '/chat/fetchPrivacySettings/rome')).body;
    expect(await privacy()).toMatchObject({ readreceipts: 'none' });
    await set('rome', { readMessages: true });
    expect(await privacy()).toMatchObject({ readreceipts: 'all' });
    const { body } = await send('paris', jid('rome'));
    await status('paris', jid('rome'), body.key.id, 'READ');
    await set('rome', { readMessages: false });
  });
});

describe('a blocked contact', () => {
  it('is told nothing, and its messages bounce, in both directions', async () => {
    await gateway.call('POST', '/message/updateBlockStatus/rome', { number: jid('paris'), status: 'block' });
    const count = (await messages('rome', jid('paris'))).length;
    const bounced = await send('paris', jid('rome'));
    expect(bounced.body.status).toBe('PENDING');
    await status('paris', jid('rome'), bounced.body.key.id, 'ERROR');
    const back = await send('rome', jid('paris'));
    await status('rome', jid('paris'), back.body.key.id, 'ERROR');
    expect(await messages('rome', jid('paris'))).toHaveLength(count + 1);
    await gateway.call('POST', '/message/updateBlockStatus/rome', {
      number: jid('paris'),
      status: 'unblock',
    });
    const passes = await send('paris', jid('rome'));
    await status('paris', jid('rome'), passes.body.key.id, 'DELIVERY_ACK');
    // What bounced stays bounced.
    await status('paris', jid('rome'), bounced.body.key.id, 'ERROR');
  });

  it('may be a person that blocks the instance', async () => {
    const block = (blocked: boolean) =>
      gateway.call('POST', '/inbox/api/instances/paris/blocks', { as: ada.jid, blocked });
    await block(true);
    const { body } = await send('paris', ada.number);
    await status('paris', ada.jid, body.key.id, 'ERROR');
    await block(false);
  });

  it('calls without being heard', async () => {
    await gateway.call('POST', '/message/updateBlockStatus/oslo', { number: hedy.number, status: 'block' });
    await set('oslo', { rejectCall: true, msgCall: 'No' });
    await gateway.call('POST', '/inbox/api/instances/oslo/calls', { as: hedy.jid });
    await gateway.call('POST', '/inbox/api/instances/oslo/calls', { as: ada.jid });
    await told('oslo', 'call', ({ from, status: outcome }) => from === ada.jid && outcome === 'reject');
    expect(events.some(({ event, envelope }) => event === 'call' && envelope.data.from === hedy.jid)).toBe(
      false,
    );
    await set('oslo', { rejectCall: false });
    await gateway.call('POST', '/message/updateBlockStatus/oslo', { number: hedy.number, status: 'unblock' });
  });
});

describe('a call', () => {
  it('rings until the caller hangs up', async () => {
    const { body } = await gateway.call('POST', '/inbox/api/instances/paris/calls', { as: ada.jid });
    await told('paris', 'call', ({ id, status: state }) => id === body.callId && state === 'offer');
    await gateway.call('DELETE', `/inbox/api/instances/paris/calls/${body.callId}`);
    await told('paris', 'call', ({ id, status: state }) => id === body.callId && state === 'terminate');
    await gateway.call('DELETE', `/inbox/api/instances/paris/calls/${body.callId}`);
    await send('paris', ada.number);
    const ends = events.filter(({ event, envelope }) => event === 'call' && envelope.data.id === body.callId);
    expect(ends.map(({ envelope }) => envelope.data.status)).toEqual(['offer', 'terminate']);
  });

  it('that is rejected without msgCall is answered by nothing', async () => {
    await set('rome', { rejectCall: true, msgCall: '' });
    const count = (await messages('rome', ada.jid)).length;
    const { body } = await gateway.call('POST', '/inbox/api/instances/rome/calls', { as: ada.jid });
    await told('rome', 'call', ({ id, status: state }) => id === body.callId && state === 'reject');
    await send('rome', ada.number);
    expect(await messages('rome', ada.jid)).toHaveLength(count + 1);
    await set('rome', { rejectCall: false });
  });
});

describe('an instance that is logged out', () => {
  it('gets what was sent meanwhile when it connects, and the sender sees it then', async () => {
    await gateway.call('DELETE', '/instance/logout/oslo');
    await told('oslo', 'connection.update', ({ state }) => state === 'close');
    const sent: string[] = [];
    for (let count = 0; count < 2; count++) {
      sent.push((await send('paris', jid('oslo'))).body.key.id);
    }
    await status('paris', jid('oslo'), sent[1] ?? '', 'SERVER_ACK');
    expect(await messages('oslo', jid('paris'))).toEqual([]);
    await gateway.call('GET', '/instance/connect/oslo');
    await told('oslo', 'connection.update', ({ state }) => state === 'open');
    for (const id of sent) {
      await status('paris', jid('oslo'), id, 'DELIVERY_ACK');
    }
    expect((await messages('oslo', jid('paris'))).map(({ key }: Shown) => key.id)).toEqual(sent);
  });

  it('stays logged out after a restart', async () => {
    await gateway.call('DELETE', '/instance/logout/oslo');
    stopFeed();
    await gateway.close();
    gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
    stopFeed = await followFeed(gateway.url, (event) => events.push(event));
    const state = await gateway.call('GET', '/instance/connectionState/oslo');
    expect(state.body.instance.state).toBe('close');
    const listed = (await gateway.call('GET', '/instance/fetchInstances')).body;
    expect(listed.find(({ instanceName }: { instanceName: string }) => instanceName === 'oslo').status).toBe(
      'close',
    );
    await gateway.call('GET', '/instance/connect/oslo');
  });
});

describe('a group', () => {
  it('is entered by its code; everybody in it is told, and what is said afterwards arrives', async () => {
    const group = await groupOf('paris');
    const { body } = await gateway.call('GET', `/group/inviteCode/paris?groupJid=${group}`);
    const entered = await gateway.call('GET', `/group/acceptInviteCode/rome?inviteCode=${body.inviteCode}`);
    expect(entered.body).toEqual({ accepted: true, groupJid: group });
    await told(
      'paris',
      'group-participants.update',
      (data) => data.id === group && data.action === 'add' && data.participants[0] === jid('rome'),
    );
    const sent = await send('paris', group);
    await eventually(
      () => messages('rome', group),
      (found) => found.at(-1)?.key.id === sent.body.key.id,
    );
    // Who is no admin invites nobody.
    const refused = await gateway.call('GET', `/group/inviteCode/rome?groupJid=${group}`);
    expect([refused.status, refused.body.code]).toEqual([502, 'network_refused']);
    // Entering again changes nothing.
    await gateway.call('GET', `/group/acceptInviteCode/rome?inviteCode=${body.inviteCode}`);
    const { body: members } = await gateway.call('GET', `/group/participants/rome?groupJid=${group}`);
    expect(members.participants.map(({ name }: { name: string }) => name)).toEqual([
      'paris',
      'Ada Lovelace',
      'Hedy Lamarr',
      'Nikola Tesla',
      'rome',
    ]);
  });

  it('is not entered by a code that was made up', async () => {
    const { body } = await gateway.call('GET', `/group/inviteCode/paris?groupJid=${await groupOf('paris')}`);
    const bytes = Buffer.from(body.inviteCode, 'base64url');
    bytes[19] = (bytes[19] ?? 0) ^ 1;
    for (const code of [bytes.toString('base64url'), 'x', body.inviteCode.slice(0, -2)]) {
      const answer = await gateway.call('GET', `/group/acceptInviteCode/oslo?inviteCode=${code}`);
      expect([answer.status, answer.body.code]).toEqual([404, 'group_not_found']);
    }
  });

  it('shows what was said before to whoever wants the full history, unread and untold to nobody', async () => {
    const group = await groupOf('paris');
    const earlier = (await send('paris', group)).body.key.id;
    await status('paris', group, earlier, 'DELIVERY_ACK');
    const { body } = await gateway.call('GET', `/group/inviteCode/paris?groupJid=${group}`);
    await gateway.call('GET', `/group/acceptInviteCode/oslo?inviteCode=${body.inviteCode}`);
    expect(await messages('oslo', group)).toEqual([]);
    await set('oslo', { syncFullHistory: true });
    expect((await messages('oslo', group)).map(({ key }: Shown) => key.id)).toContain(earlier);
    const [chat] = (await gateway.call('POST', '/chat/findChats/oslo', { where: { remoteJid: group } })).body;
    expect(chat.unreadCount).toBe(0);
    expect(
      events.some(
        (one) =>
          one.instanceId === ids.oslo &&
          one.event === 'messages.upsert' &&
          one.envelope.data.key.id === earlier,
      ),
    ).toBe(false);
    // Once more brings nothing twice.
    await set('oslo', { syncFullHistory: false });
    await set('oslo', { syncFullHistory: true });
    const found = (await messages('oslo', group)).map(({ key }: Shown) => key.id);
    expect(new Set(found).size).toBe(found.length);
  });

  it('goes with the instance that owns it; a member only leaves it', async () => {
    const group = await groupOf('paris');
    await gateway.call('DELETE', '/instance/delete/rome');
    const { body } = await gateway.call('GET', `/group/participants/paris?groupJid=${group}`);
    expect(body.participants.map(({ name }: { name: string }) => name)).not.toContain('rome');
    await gateway.call('DELETE', '/instance/delete/paris');
    const gone = await gateway.call('GET', `/group/participants/oslo?groupJid=${group}`);
    expect(gone.body.code).toBe('group_not_found');
  });
});
