/** The operations of the gateway on Telegram, against a Bot API server that checks each request. */
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ada, createBot, hedy, startTelegram, type TelegramUnderTest } from './telegram-fixture.ts';

let net: TelegramUnderTest;

beforeAll(async () => {
  net = await startTelegram();
  await createBot(net);
});

beforeEach(() => {
  net.api.mishaps.length = 0;
});

afterAll(async () => {
  expect(net.api.faults).toEqual([]);
  // The token is part of every address that the gateway calls.
  expect(net.logged.length).toBeGreaterThan(0);
  expect(net.logged.filter((line) => line.includes(net.api.secret))).toEqual([]);
  await net.close();
});

const lastSent = () => net.api.messages.at(-1);
const call: TelegramUnderTest['gateway']['call'] = (...given) => net.gateway.call(...given);

describe('a voice message', () => {
  it('goes to a private chat as it is, and SERVER_ACK is its last status', async () => {
    const sent = await net.voice(ada.id);
    expect(sent.status).toBe(200);
    expect(sent.body).toMatchObject({
      key: { remoteJid: '501@telegram', fromMe: true },
      status: 'PENDING',
      message: { audioMessage: { ptt: true, seconds: 1 } },
    });
    expect(lastSent()?.request).toMatchObject({ chat_id: 501, duration: 1, voice: { bytes: net.note } });
    const update = await net.event(
      'the status',
      ({ event, envelope }) => event === 'messages.update' && envelope.data.key.id === sent.body.key.id,
    );
    expect(update.envelope.data.status).toBe('SERVER_ACK');
  });

  it('goes to a group by its id with the sign, also as an integer', async () => {
    const sent = await net.gateway.call('POST', '/message/sendText/bot', { number: -4001, text: 'hello' });
    expect(sent.body.key.remoteJid).toBe('-4001@telegram');
    expect((await net.voice('-4001@telegram')).body.key.remoteJid).toBe('-4001@telegram');
    expect(lastSent()?.chatId).toBe(-4001);
  });

  it('answers a message of its chat, and names whom it mentions under the player', async () => {
    const asked = net.api.say(net.family, ada, { text: 'Where are you?' });
    await net.event('the question', ({ envelope }) => envelope.data.key?.id === `-4001_${asked}`);
    await net.voice(-4001, { quoted: { key: { id: `-4001_${asked}` } }, mentioned: ['501@telegram'] });
    expect(lastSent()?.request).toMatchObject({
      reply_parameters: { message_id: asked, allow_sending_without_reply: true },
      caption: 'Ada',
      caption_entities: [{ type: 'text_mention', offset: 0, length: 3, user: { id: 501 } }],
    });
  });

  it.for([
    [{ mentionsEveryOne: true }, 501, 'mentionsEveryOne is not supported by the telegram transport'],
    [{ mentioned: ['-4001'] }, 400, /^mentioned\[0\]: /],
    [{ mentioned: ['@somebody'] }, 400, /^mentioned\[0\]: .*into the text/],
  ] as const)('%j is refused, and nothing is sent', async ([fields, status, says]) => {
    const before = net.api.messages.length;
    const { status: answered, body } = await net.voice(-4001, fields);
    expect([answered, body.response.message]).toEqual([status, [expect.stringMatching(says)]]);
    expect(net.api.messages).toHaveLength(before);
  });

  it('shows "recording" during the delay', async () => {
    const before = net.api.requests.length;
    await net.voice(ada.id, { delay: 30 });
    const asked = net.api.requests.slice(before).filter(({ method }) => method !== 'getUpdates');
    expect(asked.map(({ method }) => method)).toEqual(['sendChatAction', 'sendVoice']);
    expect(asked[0]?.parameters).toEqual({ chat_id: 501, action: 'record_voice' });
  });

  it('gets and changes a caption; a text changes its text', async () => {
    const { key } = (await net.voice(ada.id)).body;
    const edit = (text: string, of: object) =>
      call('POST', '/chat/updateMessage/bot', { number: ada.id, text, key: of });
    expect((await edit('from the sea', key)).status).toBe(200);
    // The same again is no error, although Telegram refuses it.
    expect((await edit('from the sea', key)).status).toBe(200);
    expect(lastSent()?.text).toBe('from the sea');
    const text = await call('POST', '/message/sendText/bot', { number: ada.id, text: 'helo' });
    expect((await edit('hello', text.body.key)).status).toBe(200);
    expect(lastSent()?.text).toBe('hello');
  });

  it.for([
    ['Forbidden: bot was blocked by the user', 502, /the person has blocked the bot/],
    ['Bad Request: chat not found', 400, /has to write to the bot first/],
    ['Bad Request: VOICE_MESSAGES_FORBIDDEN', 502, /takes no voice messages/],
    ['Forbidden: bot was kicked from the supergroup chat', 502, /add it again/],
    ['Bad Request: not enough rights to send voice notes to the chat', 502, /lacks the right/],
    ['Bad Request: TOPIC_CLOSED', 502, /in its words: Bad Request: TOPIC_CLOSED/],
  ] as const)('that is refused with "%s" answers %d and a sentence', async ([refuses, status, sentence]) => {
    const chat = net.api.person(510, 'Grace', { refuses });
    const answer = await net.voice(chat.id);
    expect([answer.status, answer.body.response.message[0]]).toEqual([
      status,
      expect.stringMatching(sentence),
    ]);
  });

  it('to nobody is refused before anything is prepared', async () => {
    const answer = await net.voice(999);
    expect([answer.status, answer.body.code]).toEqual([400, 'unknown_recipient']);
  });
});

describe('a public name', () => {
  it('means a channel, and never a person', async () => {
    net.api.group(-1009, 'News', { type: 'channel', username: 'soundpost_news' });
    net.api.person(520, 'Joan', { username: 'joan_clarke' });
    expect((await net.voice('@soundpost_news')).body.key.remoteJid).toBe('-1009@telegram');
    const answer = await net.voice('@joan_clarke');
    expect([answer.status, answer.body.response.message[0]]).toEqual([
      400,
      expect.stringMatching(/not by @name/),
    ]);
  });
});

describe('a request to send more slowly', () => {
  it('is waited for when it is short', async () => {
    net.api.person(530, 'Ida');
    net.api.slowDown(530, 1);
    expect((await net.voice(530)).status).toBe(200);
    expect(
      net.api.requests.filter(({ parameters }) => parameters.chat_id === 530 && parameters.voice),
    ).toHaveLength(2);
  });

  it('is passed on when it is long, and nothing is sent there before', async () => {
    net.api.person(531, 'Ida');
    net.api.slowDown(531, 40);
    const [first, second] = [await net.voice(531), await net.voice(531)];
    expect([first.status, second.status]).toEqual([429, 429]);
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(30);
    expect(
      net.api.requests.filter(({ parameters }) => parameters.chat_id === 531 && parameters.voice),
    ).toHaveLength(1);
  });
});

describe('a lost answer', () => {
  it.for(['before', 'after'] as const)(
    'is 504 when the connection broke %s it was sent, and it is never sent again',
    async (lose) => {
      const chat = net.api.person(lose === 'before' ? 540 : 541, 'Alan');
      net.api.mishaps.push({ method: 'sendVoice', lose });
      const headers = { 'Idempotency-Key': `lost ${lose}` };
      const answers = [await net.voice(chat.id, {}, headers), await net.voice(chat.id, {}, headers)];
      expect(answers.map(({ status }) => status)).toEqual([504, 504]);
      expect(net.api.messages.filter(({ chatId }) => chatId === chat.id)).toHaveLength(
        lose === 'after' ? 1 : 0,
      );
    },
  );

  it('of a refusal is none: the repetition is sent', async () => {
    const chat = net.api.person(542, 'Alan', { refuses: 'Forbidden: bot was blocked by the user' });
    const headers = { 'Idempotency-Key': 'unblocked' };
    expect((await net.voice(chat.id, {}, headers)).status).toBe(502);
    delete chat.refuses;
    expect((await net.voice(chat.id, {}, headers)).status).toBe(200);
  });
});

describe('a group', () => {
  it('that becomes a supergroup keeps its chat under the new id', async () => {
    const old = net.api.group(-4100, 'Club');
    await net.voice(old.id);
    net.api.group(-1004100, 'Club', { type: 'supergroup' });
    old.upgradedTo = -1004100;
    const sent = await net.voice(old.id);
    expect(sent.status).toBe(200);
    expect(lastSent()?.chatId).toBe(-1004100);
    const { body: chats } = await call('POST', '/chat/findChats/bot');
    const clubs = chats.filter(({ pushName }: { pushName: string }) => pushName === 'Club');
    expect(clubs.map(({ remoteJid }: { remoteJid: string }) => remoteJid)).toEqual(['-1004100@telegram']);
    // The old id is remembered: Telegram is not asked in vain again.
    expect((await net.voice(old.id)).body.key.remoteJid).toBe('-1004100@telegram');
  });

  it('moves also when Telegram only says so', async () => {
    const old = net.api.group(-4200, 'Choir');
    await net.voice(old.id);
    net.api.group(-1004200, 'Choir', { type: 'supergroup' });
    net.api.say(old, ada, { migrate_to_chat_id: -1004200 });
    const found = () => call('POST', '/chat/findChats/bot', { where: { remoteJid: '-1004200@telegram' } });
    await until('the chat moves', async () => (await found()).body[0]?.lastMessage);
    expect((await call('POST', '/chat/findChats/bot', { where: { remoteJid: '-4200' } })).body).toEqual([]);
  });

  it('names its administrators, which is all that a bot is shown', async () => {
    const { body } = await call('GET', '/group/participants/bot?groupJid=-4001');
    expect(body.participants).toEqual([
      { id: '501@telegram', admin: 'superadmin', name: 'Ada' },
      { id: '7001@telegram', admin: 'admin', name: 'Soundpost' },
    ]);
    expect((await call('GET', '/group/participants/bot?groupJid=501')).body.code).toBe('group_not_found');
  });

  it('has one invitation until it is revoked, which people are sent', async () => {
    const [first, second] = [
      await call('GET', '/group/inviteCode/bot?groupJid=-4001'),
      await call('GET', '/group/inviteCode/bot?groupJid=-4001'),
    ];
    expect(second.body).toEqual(first.body);
    expect(first.body.inviteUrl).toBe(`https://t.me/+${first.body.inviteCode}`);
    const revoked = await call('POST', '/group/revokeInviteCode/bot?groupJid=-4001');
    expect(revoked.body.inviteCode).not.toBe(first.body.inviteCode);
    const invited = await call('POST', '/group/sendInvite/bot', {
      ...{ groupJid: '-4001', description: 'Come in', numbers: ['501'] },
    });
    expect(invited.body).toEqual({ send: true, inviteUrl: revoked.body.inviteUrl });
    expect(lastSent()?.request).toMatchObject({ text: `Come in\n\n${revoked.body.inviteUrl}` });
  });
});

describe('what no bot can do', () => {
  it.for([
    ['POST', '/message/updateBlockStatus/bot', { number: '501', status: 'block' }],
    ['GET', '/chat/fetchPrivacySettings/bot', undefined],
    ['GET', '/group/acceptInviteCode/bot?inviteCode=abc', undefined],
    ['POST', '/chat/sendPresence/bot', { number: '501', presence: 'available', delay: 1 }],
  ] as const)('%s %s answers 501', async ([method, path, body]) => {
    const answer = await call(method, path, body);
    expect([answer.status, answer.body.code]).toEqual([501, 'unsupported']);
  });
});

it('contacts are the people and groups that were seen', async () => {
  net.api.say(net.family, hedy, { text: 'I am here, too' });
  const contacts = () => call('POST', '/chat/findContacts/bot');
  await until('Hedy is known', async () =>
    (await contacts()).body.some(({ remoteJid }: { remoteJid: string }) => remoteJid === '502@telegram'),
  );
  expect((await contacts()).body).toContainEqual(
    expect.objectContaining({ remoteJid: '-4001@telegram', pushName: 'Family', isGroup: true }),
  );
});
