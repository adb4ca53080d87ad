/** What the gateway does on a business number of the Cloud API: nine of the eleven operations, statuses, webhooks, errors. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { fetch } from 'soundpost-testing/http';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../gateway-fixture.ts';
import { account, ada, type CloudEvent, type CloudUnderTest, hedy, startCloud } from './cloud-fixture.ts';
import {
  ACCESS_TOKEN,
  APP_SECRET,
  blockedByPerson,
  closedWindow,
  GROUP_ID,
  nobodyThere,
  numbers,
  VERIFY_TOKEN,
} from './fake-graph.ts';

const GROUP = `${GROUP_ID}@g.us`;

let cloud: CloudUnderTest;

beforeAll(async () => {
  cloud = await startCloud();
});

afterAll(() => cloud.close());

const requests = (name: string) => cloud.graph.requests.filter((request) => request.name === name);
const update = (id: string, status: string) => (event: CloudEvent) =>
  event.event === 'messages.update' && event.data.key.id === id && event.data.status === status;
const settings = (values: object): Promise<Answer> => cloud.call('POST', '/settings/set/shop', values);

describe('a voice message', () => {
  it('is uploaded as it is and sent as one, with our own mark, and becomes PLAYED', async () => {
    const before = cloud.graph.taken.length;
    cloud.graph.follow = ['sent', 'delivered', 'read', 'played'];
    const { status, body } = await cloud.voice(ada.number);
    cloud.graph.follow = ['sent'];
    expect(status).toBe(200);
    expect(body.key).toMatchObject({
      remoteJid: ada.jid,
      fromMe: true,
      id: expect.stringMatching(/^[0-9A-F]{32}$/),
    });
    const [message] = cloud.graph.taken.slice(before);
    expect(message?.body).toMatchObject({
      ...{ recipient_type: 'individual', to: ada.number, type: 'audio', audio: { voice: true } },
      biz_opaque_callback_data: body.key.id,
    });
    const sha256 = createHash('sha256')
      .update(message?.audio ?? '')
      .digest('base64');
    expect(sha256).toBe(body.message.audioMessage.fileSha256);
    for (const word of ['SERVER_ACK', 'DELIVERY_ACK', 'READ', 'PLAYED']) {
      await cloud.event(`it becomes ${word}`, update(body.key.id, word));
    }
  });

  it('quotes what came in by WhatsApp’s id, and an own one by WhatsApp’s, not by ours', async () => {
    const quoted = await cloud.graph.say(ada.number, ada.name, { type: 'text', text: { body: 'When?' } });
    await cloud.event(
      'the question',
      ({ event, data }) => event === 'messages.upsert' && data.key.id === quoted,
    );
    const reply = await cloud.voice(ada.number, { quoted: { key: { id: quoted } } });
    expect(cloud.graph.taken.at(-1)?.body).toMatchObject({ context: { message_id: quoted } });
    const own = cloud.graph.taken.at(-1)?.id;
    await cloud.voice(ada.number, { quoted: { key: { id: reply.body.key.id } } });
    expect(cloud.graph.taken.at(-1)?.body).toMatchObject({ context: { message_id: own } });
    await cloud.voice(ada.number, { quoted: { key: { id: 'unknown' } } });
    expect(cloud.graph.taken.at(-1)?.body).not.toHaveProperty('context');
  });

  it('that mentions somebody or everybody is refused, and not sent without the mention', async () => {
    const before = cloud.graph.taken.length;
    for (const fields of [{ mentioned: [hedy.number] }, { mentionsEveryOne: true }]) {
      const { status, body } = await cloud.voice(GROUP, fields);
      expect([status, body.code]).toEqual([501, 'unsupported']);
      expect(body.response.message[0]).toContain(Object.keys(fields)[0]);
    }
    expect(cloud.graph.taken).toHaveLength(before);
    expect((await cloud.voice(ada.number, { mentioned: [], mentionsEveryOne: false })).status).toBe(200);
  });

  it('goes to a group, and a text too', async () => {
    expect((await cloud.voice(GROUP)).status).toBe(200);
    expect(cloud.graph.taken.at(-1)?.body).toMatchObject({ recipient_type: 'group', to: GROUP_ID });
    const text = await cloud.call('POST', '/message/sendText/shop', {
      number: ada.number,
      text: 'Here it is.',
    });
    expect(text.status).toBe(201);
    expect(cloud.graph.taken.at(-1)?.body).toMatchObject({ type: 'text', text: { body: 'Here it is.' } });
  });
});

describe('what people write', () => {
  it('becomes events once, with our id of what they quote', async () => {
    const { body } = await cloud.voice(hedy.number);
    const context = { id: cloud.graph.taken.at(-1)?.id, from: '15550783881' };
    const id = await cloud.graph.say(
      hedy.number,
      hedy.name,
      { type: 'text', text: { body: 'Thanks' } },
      { context },
    );
    const arrival = ({ event, data }: CloudEvent) => event === 'messages.upsert' && data.key.id === id;
    const { data } = await cloud.event('the thanks', arrival);
    expect(data).toMatchObject({
      pushName: 'Hedy',
      message: { conversation: 'Thanks' },
      key: { remoteJid: hedy.jid },
    });
    const { body: chats } = await cloud.call('POST', '/chat/findChats/shop', {
      where: { remoteJid: hedy.jid },
    });
    expect(chats[0]).toMatchObject({ pushName: 'Hedy', unreadCount: 1 });
    await cloud.graph.say(hedy.number, hedy.name, { type: 'text', text: { body: 'Again' } }, { id });
    const next = await cloud.graph.say(hedy.number, hedy.name, { type: 'text', text: { body: 'Next' } });
    await cloud.event(
      'the next one',
      ({ event, data }) => event === 'messages.upsert' && data.key.id === next,
    );
    expect(cloud.events.filter(arrival)).toHaveLength(1);
    expect(body.key.id).toMatch(/^[0-9A-F]{32}$/);
  });

  it('is fetched if it is a video, also one sent as a document', async () => {
    const id = cloud.graph.keep(cloud.note);
    const media = { id, mime_type: 'video/mp4', caption: 'look' };
    for (const type of ['video', 'document']) {
      const sent = await cloud.graph.say(ada.number, ada.name, { type, [type]: media });
      const { data } = await cloud.event(
        `the ${type}`,
        (told) => told.event === 'messages.upsert' && told.data.key.id === sent,
      );
      expect(data.message.videoMessage).toMatchObject({
        ...{ mimetype: 'video/mp4', caption: 'look', fileLength: String(cloud.note.length) },
      });
    }
  });

  it('is fetched if it is a voice message, and is a text if a button was tapped', async () => {
    const mediaId = cloud.graph.keep(cloud.note);
    const audio = { id: mediaId, mime_type: 'audio/ogg; codecs=opus', voice: true };
    const id = await cloud.graph.say(ada.number, ada.name, { type: 'audio', audio });
    const arrival = await cloud.event(
      'the note',
      ({ event, data }) => event === 'messages.upsert' && data.key.id === id,
    );
    expect(arrival.data.message.audioMessage).toMatchObject({ ptt: true, seconds: 1 });
    const taps = {
      type: 'interactive',
      interactive: { type: 'button_reply', button_reply: { id: '1', title: 'Yes' } },
    };
    const tapped = await cloud.graph.say(ada.number, ada.name, taps);
    const answer = await cloud.event(
      'the tap',
      ({ event, data }) => event === 'messages.upsert' && data.key.id === tapped,
    );
    expect(answer.data.message).toEqual({ conversation: 'Yes' });
  });
});

describe('the other operations', () => {
  it('contacts are those of our records', async () => {
    const { body } = await cloud.call('POST', '/chat/findContacts/shop', {});
    expect(body).toContainEqual(
      expect.objectContaining({ remoteJid: hedy.jid, pushName: 'Hedy', isGroup: false }),
    );
    expect(body).toContainEqual(
      expect.objectContaining({ remoteJid: GROUP, pushName: 'Buyers', isGroup: true }),
    );
  });

  it('typing is shown only with readMessages, because it marks as read', async () => {
    const show = () =>
      cloud.call('POST', '/chat/sendPresence/shop', { number: ada.number, presence: 'recording', delay: 0 });
    const typing = () => requests('message').filter(({ body }) => 'typing_indicator' in body).length;
    expect((await show()).status).toBe(201);
    expect(typing()).toBe(0);
    expect((await settings({ readMessages: true })).status).toBe(201);
    await show();
    expect(typing()).toBe(1);
    const id = await cloud.graph.say(ada.number, ada.name, { type: 'text', text: { body: 'Read me' } });
    await until('it is marked as read', () =>
      requests('message').some(({ body }) => body.message_id === id && !('typing_indicator' in body)),
    );
    await settings({ readMessages: false });
  });

  it('blocks and unblocks, and says why somebody cannot be blocked', async () => {
    const block = (number: string, status: string) =>
      cloud.call('POST', '/message/updateBlockStatus/shop', { number, status });
    expect((await block(hedy.number, 'block')).status).toBe(201);
    expect([...cloud.graph.blocked]).toEqual([hedy.number]);
    const { body } = await cloud.call('POST', '/chat/findContacts/shop', { where: { id: hedy.number } });
    expect(body[0]).toMatchObject({ blocked: true });
    await block(hedy.number, 'unblock');
    expect([...cloud.graph.blocked]).toEqual([]);
    const refused = await block(closedWindow, 'block');
    expect([refused.status, refused.body.code]).toEqual([502, 'network_refused']);
    expect(refused.body.response.message[0]).toContain('24 hours');
  });

  it('answers the invite link of its records, because asking makes a new one', async () => {
    const code = () => cloud.call('GET', `/group/inviteCode/shop?groupJid=${GROUP}`);
    const unknown = await code();
    expect([unknown.status, unknown.body.response.message[0]]).toEqual([
      502,
      expect.stringContaining('revokeInviteCode'),
    ]);
    expect(requests('invite')).toHaveLength(0);
    const groups = [
      {
        group_id: GROUP_ID,
        type: 'group_create',
        subject: 'Buyers',
        invite_link: 'https://chat.whatsapp.com/FIRST',
      },
    ];
    await cloud.graph.post('group_lifecycle_update', { groups });
    expect((await code()).body).toEqual({
      inviteUrl: 'https://chat.whatsapp.com/FIRST',
      inviteCode: 'FIRST',
    });
    const renewed = await cloud.call('POST', `/group/revokeInviteCode/shop?groupJid=${GROUP}`);
    expect(renewed.body).toMatchObject({ revoked: true, inviteCode: 'LINK1' });
    expect((await code()).body.inviteCode).toBe('LINK1');
    expect(requests('invite')).toHaveLength(1);
    const invited = { groupJid: GROUP, description: 'Join us', numbers: [ada.number, hedy.number] };
    expect((await cloud.call('POST', '/group/sendInvite/shop', invited)).body.send).toBe(true);
    const last = cloud.graph.taken.at(-1)?.body;
    expect(last).toMatchObject({
      to: hedy.number,
      text: { body: 'Join us\n\nhttps://chat.whatsapp.com/LINK1' },
    });
  });

  it('lists the members of a group, and tells who comes', async () => {
    const { body } = await cloud.call('GET', `/group/participants/shop?groupJid=${GROUP}`);
    expect(body.participants).toEqual([
      { id: numbers.own.jid, admin: 'superadmin', name: 'shop' },
      { id: ada.jid, admin: null, name: 'Ada' },
      { id: hedy.jid, admin: null, name: 'Hedy' },
    ]);
    const foreign = await cloud.call('GET', '/group/participants/shop?groupJid=abcdefghijklmnopqrstu@g.us');
    expect([foreign.status, foreign.body.code]).toEqual([404, 'group_not_found']);
    const added_participants = [{ wa_id: hedy.number }];
    const groups = [{ group_id: GROUP_ID, type: 'group_participants_add', added_participants }];
    await cloud.graph.post('group_participants_update', { groups });
    await cloud.event(
      'she is in',
      ({ event, data }) => event === 'group-participants.update' && data.participants[0] === hedy.jid,
    );
  });

  it('answers 501 to what the network has not', async () => {
    const { key } = (await cloud.voice(ada.number)).body;
    const edit = await cloud.call('POST', '/chat/updateMessage/shop', {
      number: ada.number,
      text: 'new',
      key,
    });
    const privacy = await cloud.call('GET', '/chat/fetchPrivacySettings/shop');
    const accept = await cloud.call('GET', '/group/acceptInviteCode/shop?inviteCode=FIRST');
    for (const { status, body } of [edit, privacy, accept])
      expect([status, body.code]).toEqual([501, 'unsupported']);
  });
});

describe('what WhatsApp refuses', () => {
  it.each([
    [closedWindow, /more than 24 hours ago.*\(131047\)/],
    [nobodyThere, /not on WhatsApp.*\(131026\)/],
    [blockedByPerson, /has blocked the account.*\(131026\)/],
  ])(
    '%s: a failed status after the 200 makes the message ERROR, with a sentence',
    async (number, sentence) => {
      const { status, body } = await cloud.voice(number);
      expect(status).toBe(200);
      const { data } = await cloud.event('it fails', update(body.key.id, 'ERROR'));
      expect(data.error).toEqual({ code: 'network_refused', message: expect.stringMatching(sentence) });
    },
  );

  it('a window that our records know to be closed is refused without a request', async () => {
    await cloud.graph.say('12025550177', 'Late', { type: 'text', text: { body: 'Hi' } });
    const { body: made } = await cloud.call('GET', '/instance/fetchInstances?instanceName=shop');
    const key = gatewayKey('book', made[0].instanceId, '12025550177@s.whatsapp.net');
    await until('it is recorded', async () => (await cloud.redis.hget(key, 'heardAtMs')) !== null);
    const [seconds = 0] = (await cloud.redis.time()).map(Number);
    await cloud.redis.hset(key, 'heardAtMs', (seconds - 24 * 3600 - 60) * 1000);
    const before = cloud.graph.requests.length;
    const { status, body } = await cloud.voice('12025550177');
    expect([status, body.code, body.response.message[0]]).toEqual([
      502,
      'network_refused',
      expect.stringContaining('more than 24 hours ago'),
    ]);
    expect(cloud.graph.requests.length).toBe(before);
  });

  it('what it limits is tried again in the same request', async () => {
    const before = cloud.graph.taken.length;
    cloud.graph.accidents.push(131056);
    expect((await cloud.voice(ada.number)).status).toBe(200);
    expect(cloud.graph.taken.length).toBe(before + 1);
  });
});

describe('an answer that is lost', () => {
  it.each(['lost', 'page'] as const)(
    '%s: the message is not sent again, and a status settles it',
    async (accident) => {
      const headers = { 'Idempotency-Key': `accident ${accident}` };
      const before = cloud.graph.taken.length;
      cloud.graph.follow = [];
      cloud.graph.accidents.push(accident);
      const answers = [
        await cloud.voice(hedy.number, {}, headers),
        await cloud.voice(hedy.number, {}, headers),
      ];
      for (const { status, body } of answers) expect([status, body.code]).toEqual([504, 'timeout']);
      // The first one may be settled before it is repeated.
      expect(answers.map(({ body }) => body.retryable)).toEqual([undefined, false]);
      const [message, ...more] = cloud.graph.taken.slice(before);
      expect(more).toEqual([]);
      if (message !== undefined) await cloud.graph.status(message, 'delivered');
      cloud.graph.follow = ['sent'];
      const id = String(message?.body.biz_opaque_callback_data);
      await cloud.event('its status', update(id, 'DELIVERY_ACK'));
      const settled = await cloud.voice(hedy.number, {}, headers);
      expect([settled.status, settled.body.key.id]).toEqual([200, id]);
      expect(cloud.graph.taken.length).toBe(before + 1);
    },
  );

  it('after an error of Meta’s own server nothing is known either', async () => {
    const before = cloud.graph.taken.length;
    const headers = { 'Idempotency-Key': 'broken' };
    cloud.graph.accidents.push('broken');
    expect((await cloud.voice(hedy.number, {}, headers)).status).toBe(504);
    expect((await cloud.voice(hedy.number, {}, headers)).status).toBe(504);
    expect(cloud.graph.taken.length).toBe(before);
  });

  it('a certain refusal leaves it to be sent again', async () => {
    const headers = { 'Idempotency-Key': 'refused' };
    cloud.graph.accidents.push(131042);
    const refused = await cloud.voice(hedy.number, {}, headers);
    expect([refused.status, refused.body.response.message[0]]).toEqual([
      502,
      expect.stringContaining('payment'),
    ]);
    expect((await cloud.voice(hedy.number, {}, headers)).status).toBe(200);
  });
});

describe('a webhook', () => {
  const url = (name = 'shop') => `${cloud.gateway.url}/webhooks/whatsapp-cloud/${name}`;
  const verify = async (token: string, name?: string) => {
    const query = new URLSearchParams({
      'hub.mode': 'subscribe',
      'hub.challenge': '1158201444',
      'hub.verify_token': token,
    });
    const answer = await fetch(`${url(name)}?${query}`);
    return [answer.status, await answer.text()];
  };
  const about = (phoneNumberId: string, id: string) =>
    JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [
        { id: '1', changes: [{ field: 'account_update', value: {} }] },
        {
          id: '2',
          changes: [
            {
              field: 'messages',
              value: { metadata: { phone_number_id: phoneNumberId }, messages: ['odd', text(id)] },
            },
          ],
        },
      ],
    });
  const text = (id: string) => ({
    from: ada.number,
    id,
    timestamp: '1795000000',
    type: 'text',
    text: { body: id },
  });

  it('is confirmed by the verify token alone', async () => {
    expect(await verify(VERIFY_TOKEN)).toEqual([200, '1158201444']);
    expect(await verify('wrong')).toEqual([403, '']);
    expect(await verify(VERIFY_TOKEN, 'nobody')).toEqual([403, '']);
  });

  it('is taken only with the signature of the app over its bytes', async () => {
    const body = about(numbers.own.phoneNumberId, 'wamid.SIGNED');
    expect(await cloud.graph.deliver(body, 'another secret')).toBe(403);
    expect((await fetch(url(), { method: 'POST', body })).status).toBe(403);
    expect(await cloud.graph.deliver('{', APP_SECRET)).toBe(200);
    expect(await cloud.graph.deliver(body)).toBe(200);
    await cloud.event(
      'the signed one',
      ({ event, data }) => event === 'messages.upsert' && data.key.id === 'wamid.SIGNED',
    );
  });

  it('is refused unread without a signature, and with 403 too where it cannot be read', async () => {
    const endless = request(url(), { method: 'POST', headers: { 'content-length': 10 } });
    endless.flushHeaders();
    const [refused] = await once(endless, 'response');
    endless.destroy();
    expect(refused.statusCode).toBe(403);
    expect(await cloud.graph.deliver(' '.repeat(5 * 1024 * 1024))).toBe(403);
  });

  it('leads to the instance of its number, if that is of the same app', async () => {
    const open =
      (name: string) =>
      ({ event, instance, data }: CloudEvent) =>
        event === 'connection.update' && instance === name && data.state === 'open';
    await cloud.call('POST', '/instance/create', account('branch', numbers.other));
    await cloud.call('POST', '/instance/create', account('thief', numbers.other, 'secret-of-a-thief'));
    await cloud.event('the branch is open', open('branch'));
    await cloud.event('the thief is open', open('thief'));
    expect(await cloud.graph.deliver(about(numbers.other.phoneNumberId, 'wamid.BRANCH'))).toBe(200);
    const arrival = ({ data, event }: CloudEvent) =>
      event === 'messages.upsert' && data.key.id === 'wamid.BRANCH';
    const { instance } = await cloud.event('it has arrived', arrival);
    expect(instance).toBe('branch');
    // Signed with its own secret, at its own address, about the number of others.
    const forged = about(numbers.own.phoneNumberId, 'wamid.FORGED');
    expect(await cloud.graph.deliver(forged, 'secret-of-a-thief', url('thief'))).toBe(200);
    const last = await cloud.graph.say(ada.number, ada.name, { type: 'text', text: { body: 'last' } });
    await cloud.event('the last', ({ event, data }) => event === 'messages.upsert' && data.key.id === last);
    expect(cloud.events.filter(arrival).map((event) => event.instance)).toEqual(['branch']);
    expect(JSON.stringify(cloud.events)).not.toContain('wamid.FORGED');
  });
});

it('an expired token closes the connection with an event, and is not tried again', async () => {
  cloud.graph.expired = true;
  const { status, body } = await cloud.voice(ada.number);
  expect([status, body.response.message[0]]).toEqual([
    502,
    expect.stringContaining('has expired or was withdrawn'),
  ]);
  const { data } = await cloud.event(
    'it is closed',
    ({ event, data }) => event === 'connection.update' && data.state === 'close',
  );
  expect(data.reason).toContain('has expired or was withdrawn');
  const before = cloud.graph.asked;
  const later = await cloud.voice(ada.number);
  expect([later.status, later.body.response.message[0]]).toEqual([
    503,
    expect.stringContaining('has expired'),
  ]);
  expect(cloud.graph.asked).toBe(before);
});

it('keeps its secrets', async () => {
  const { body } = await cloud.call('GET', '/instance/fetchInstances');
  for (const secret of [ACCESS_TOKEN, APP_SECRET, VERIFY_TOKEN])
    expect(JSON.stringify(body)).not.toContain(secret);
});
