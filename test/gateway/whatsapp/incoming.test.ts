import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AnyMessageContent, WAMessage } from 'baileys';
import * as baileys from 'baileys';
import type { WhatsAppSession } from 'soundpost-chat-whatsapp/session';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder } from '../gateway-fixture.ts';
import { personJid } from './fake-whatsapp.ts';
import { ada, hedy, OWN_NUMBER, type Setting, startSetting, useSettings } from './whatsapp-fixture.ts';

const { Status } = baileys.proto.WebMessageInfo;
const groupJid = '120363000000000001@g.us';
const ownJid = personJid(OWN_NUMBER);

useSettings();

let setting: Setting;
let session: WhatsAppSession;
const begin = async (settings: Partial<Setting['instance']['settings']> = {}): Promise<void> => {
  setting = await startSetting(settings);
  session = await setting.openSession();
};
beforeEach(() => begin());
afterEach(() => setting.close());

let count = 0;
const textFrom = (key: Partial<WAMessage['key']>, message: WAMessage['message']): WAMessage => {
  count += 1;
  return {
    key: { remoteJid: ada.jid, fromMe: false, id: `IN${count}`, ...key },
    message,
    messageTimestamp: 1_700_000_000,
    pushName: 'Ada L.',
  };
};
const arrive = (...messages: WAMessage[]): void =>
  setting.network.socket.emit({ 'messages.upsert': { type: 'notify', messages } });
const learn = (lid: string, pn: string) =>
  setting.network.socket.signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn }]);
const messages = async (expected: number) =>
  until(
    `${expected} messages`,
    () => setting.reported.messages.length >= expected && setting.reported.messages,
  );

describe('what the WhatsApp transport reports, against a typed fake socket', () => {
  describe('messages', () => {
    it('a text with its author, time and context', async () => {
      const message = textFrom(
        { id: 'M1' },
        {
          extendedTextMessage: {
            text: 'hello @49',
            contextInfo: {
              stanzaId: 'Q1',
              participant: `${OWN_NUMBER}:7@s.whatsapp.net`,
              quotedMessage: { conversation: 'before' },
              mentionedJid: [`${OWN_NUMBER}:7@s.whatsapp.net`],
            },
          },
        },
      );
      arrive(message);
      expect(await messages(1)).toEqual([
        {
          messageId: 'M1',
          chatJid: ada.jid,
          isGroup: false,
          authorJid: ada.jid,
          authorName: 'Ada L.',
          fromMe: false,
          isHistory: false,
          timestampSeconds: 1_700_000_000,
          content: { kind: 'text', text: 'hello @49' },
          context: {
            quoted: { id: 'Q1', text: 'before', authorJid: ownJid },
            mentioned: [ownJid],
            mentionsEveryOne: false,
            linkPreview: false,
          },
        },
      ]);
    });

    it.each<[string, WAMessage['message'], string]>([
      ['a plain text', { conversation: 'plain' }, 'plain'],
      ['a disappearing text', { ephemeralMessage: { message: { conversation: 'gone soon' } } }, 'gone soon'],
      ['a picture with words', { imageMessage: { caption: 'look' } }, 'look'],
      ['a picture without', { imageMessage: {} }, '[image]'],
      ['a place', { locationMessage: {} }, '[location]'],
      ['a poll', { pollCreationMessageV3: { name: 'which?' } }, '[poll]'],
      ['a button that was pressed', { buttonsResponseMessage: { selectedDisplayText: 'Yes' } }, 'Yes'],
      ['a button without words', { buttonsResponseMessage: { selectedButtonId: 'yes' } }, 'yes'],
      ['a row of a list', { listResponseMessage: { title: 'Tuesday' } }, 'Tuesday'],
      [
        'a row without words',
        { listResponseMessage: { singleSelectReply: { selectedRowId: 'tue' } } },
        'tue',
      ],
      ['a button of a template', { templateButtonReplyMessage: { selectedDisplayText: 'Stop' } }, 'Stop'],
      ['an interactive reply', { interactiveResponseMessage: { body: { text: 'Book it' } } }, 'Book it'],
    ])('%s is shown as text', async (_, content, text) => {
      arrive(textFrom({}, content));
      expect((await messages(1))[0]?.content).toEqual({ kind: 'text', text });
    });

    it('of a group have their author, by phone number', async () => {
      await learn('7788@lid', hedy.jid);
      arrive(
        textFrom(
          { remoteJid: groupJid, participant: '5566@lid', participantAlt: ada.jid },
          { conversation: 'one' },
        ),
        textFrom({ remoteJid: groupJid, participant: '7788@lid' }, { conversation: 'two' }),
      );
      const [one, two] = await messages(2);
      expect(one).toMatchObject({ chatJid: groupJid, isGroup: true, authorJid: ada.jid });
      expect(two).toMatchObject({ chatJid: groupJid, isGroup: true, authorJid: hedy.jid });
    });

    it('of a person whose number is not known come from the LID', async () => {
      arrive(textFrom({ remoteJid: '5566@lid' }, { conversation: 'hello' }));
      expect((await messages(1))[0]).toMatchObject({ chatJid: '5566@lid', authorJid: '5566@lid' });
    });

    it('mention people by number, too', async () => {
      await learn('5566@lid', ada.jid);
      const contextInfo = { mentionedJid: ['5566@lid', '7788@lid'] };
      arrive(textFrom({}, { extendedTextMessage: { text: 'hello', contextInfo } }));
      expect((await messages(1))[0]?.context.mentioned).toEqual([ada.jid, '7788@lid']);
    });

    it('of a person whom WhatsApp writes by a number of its own come from the phone number', async () => {
      arrive(textFrom({ remoteJid: '5566@lid', remoteJidAlt: ada.jid }, { conversation: 'hello' }));
      expect((await messages(1))[0]).toMatchObject({ chatJid: ada.jid, authorJid: ada.jid });
    });

    it('that were sent from the phone are own ones', async () => {
      arrive(textFrom({ fromMe: true }, { conversation: 'from the phone' }));
      expect((await messages(1))[0]).toMatchObject({ fromMe: true, chatJid: ada.jid, authorJid: ownJid });
    });

    it('that are for nobody’s eyes are not reported', async () => {
      arrive(
        textFrom({}, { reactionMessage: { text: '👍' } }),
        textFrom({}, { protocolMessage: {} }),
        textFrom({}, null),
        textFrom({ remoteJid: 'status@broadcast' }, { conversation: 'a story' }),
        textFrom({ remoteJid: '1@newsletter' }, { conversation: 'a channel' }),
        textFrom({}, { conversation: 'the last' }),
      );
      expect((await messages(1)).map(({ content }) => content)).toEqual([{ kind: 'text', text: 'the last' }]);
    });

    it('one that cannot be reported does not hold up the next', async () => {
      setting.reported.onMessage = async ({ messageId }) => {
        if (messageId === 'BAD') {
          throw new Error('no database');
        }
      };
      arrive(textFrom({ id: 'BAD' }, { conversation: 'a' }), textFrom({ id: 'GOOD' }, { conversation: 'b' }));
      expect((await messages(1))[0]?.messageId).toBe('GOOD');
    });

    it('of the history are reported as such, and only when it is wanted', async () => {
      const history = {
        chats: [],
        contacts: [],
        messages: [textFrom({ id: 'OLD' }, { conversation: 'old' })],
      };
      setting.network.socket.emit({ 'messaging-history.set': history });
      arrive(textFrom({ id: 'NEW' }, { conversation: 'new' }));
      expect((await messages(1)).map(({ messageId }) => messageId)).toEqual(['NEW']);
      await session.applySettings({ ...setting.instance.settings, syncFullHistory: true });
      setting.network.socket.emit({ 'messaging-history.set': history });
      expect((await messages(2))[1]).toMatchObject({ messageId: 'OLD', isHistory: true });
    });

    it('of groups are left alone when the instance ignores them', async () => {
      await session.applySettings({ ...setting.instance.settings, groupsIgnore: true });
      arrive(
        textFrom({ remoteJid: groupJid, participant: ada.jid }, { conversation: 'in the group' }),
        textFrom({}, { conversation: 'to me' }),
      );
      expect((await messages(1)).map(({ isGroup }) => isGroup)).toEqual([false]);
    });
  });

  describe('voice messages', () => {
    const sound = randomBytes(5000);
    let folder: { path: string; remove(): Promise<void> };
    beforeEach(async () => {
      folder = await makeFolder();
    });
    afterEach(() => folder.remove());

    /** As a stranger's client makes one: encrypted and uploaded by Baileys. */
    const made = async (content: (file: { url: string }) => AnyMessageContent) => {
      const file = join(folder.path, 'sound');
      await writeFile(file, sound);
      const { message } = await baileys.generateWAMessage(ownJid, content({ url: file }), {
        userJid: ada.jid,
        upload: (path) => setting.network.upload(path),
      });
      return message;
    };
    const voice = async (): Promise<NonNullable<WAMessage['message']>['audioMessage']> =>
      (await made((audio) => ({ audio, ptt: true, seconds: 1 })))?.audioMessage;

    it('come decrypted in a file that is gone afterwards', async () => {
      let path = '';
      let heard = Buffer.of();
      setting.reported.onMessage = async ({ content }) => {
        path = content.kind === 'file' ? content.path : '';
        heard = await readFile(path);
      };
      arrive(textFrom({}, { audioMessage: await voice() }));
      await messages(1);
      expect(heard.equals(sound)).toBe(true);
      await until('the file is gone', () => !existsSync(path));
    });

    it.each([
      ['a video', (video) => ({ video, caption: 'look', jpegThumbnail: '' }), 'video/mp4'],
      [
        'a document that says so',
        (document) => ({ document, mimetype: 'video/webm', caption: 'look' }),
        'video/webm',
      ],
    ] satisfies [string, (file: { url: string }) => AnyMessageContent, string][])(
      'are fetched, and so is %s',
      async (_, content, mimetype) => {
        let seen = Buffer.of();
        setting.reported.onMessage = async ({ content }) => {
          if (content.kind === 'file') seen = await readFile(content.path);
        };
        arrive(textFrom({}, await made(content)));
        const [message] = await messages(1);
        expect(message?.content).toMatchObject({ kind: 'file', video: { mimetype, caption: 'look' } });
        expect(seen.equals(sound)).toBe(true);
      },
    );

    it('are never fetched from where a stranger’s message points', async () => {
      const asked: unknown[] = [];
      const { library } = setting.network;
      const download = library.downloadContentFromMessage;
      Object.assign(library, {
        downloadContentFromMessage: (...args: Parameters<typeof download>) => {
          asked.push(args[0]);
          return download(...args);
        },
      });
      const audio = await voice();
      arrive(
        textFrom({}, { audioMessage: { ...audio, url: 'https://127.0.0.1/' } }),
        textFrom({}, { audioMessage: { ...audio, directPath: '@127.0.0.1/x' } }),
        textFrom({}, { audioMessage: { ...audio, directPath: '.example.com/x' } }),
        textFrom({}, { audioMessage: { ...audio, directPath: null, url: 'https://127.0.0.1/' } }),
      );
      expect((await messages(4)).map(({ content }) => content.kind)).toEqual([
        'file',
        'text',
        'text',
        'text',
      ]);
      expect(asked).toEqual([{ directPath: audio?.directPath, mediaKey: audio?.mediaKey }]);
    });

    it.each([
      ['are not there', async () => ({ ...(await voice()), directPath: '/v/nothing.enc' })],
      ['are not what was sent', async () => ({ ...(await voice()), fileSha256: randomBytes(32) })],
      ['have a broken key', async () => ({ ...(await voice()), mediaKey: randomBytes(5) })],
    ])('that %s are shown as text', async (_, make) => {
      arrive(textFrom({}, { audioMessage: await make() }));
      expect((await messages(1))[0]?.content).toEqual({ kind: 'text', text: '[voice message]' });
    });
  });

  describe('read receipts', () => {
    it('are sent for what arrives when the instance sends them', async () => {
      await session.applySettings({ ...setting.instance.settings, readMessages: true });
      const [theirs, own] = [
        textFrom({}, { conversation: 'a' }),
        textFrom({ fromMe: true }, { conversation: 'b' }),
      ];
      arrive(theirs, own);
      await until('it was read', () => setting.network.socket.callsOf('readMessages').length > 0);
      await messages(2);
      expect(setting.network.socket.callsOf('readMessages')).toEqual([[[theirs.key]]]);
    });

    it('are not sent otherwise', async () => {
      arrive(textFrom({}, { conversation: 'a' }), textFrom({}, { conversation: 'b' }));
      await messages(2);
      expect(setting.network.socket.callsOf('readMessages')).toEqual([]);
    });
  });

  it('changes of messages', async () => {
    const edited = (message: WAMessage['message']) => ({ message: { editedMessage: { message } } });
    setting.network.socket.emit({
      'messages.update': [
        { key: { remoteJid: ada.jid, fromMe: false, id: 'M1' }, update: edited({ conversation: 'one' }) },
        {
          key: { remoteJid: groupJid, fromMe: false, id: 'M2', participant: hedy.jid },
          update: edited({ extendedTextMessage: { text: 'two' } }),
        },
        { key: { remoteJid: ada.jid, fromMe: true, id: 'M3' }, update: edited({ conversation: 'three' }) },
      ],
    });
    await until('all are reported', () => setting.reported.edits.length === 3);
    expect(setting.reported.edits).toEqual([
      { messageId: 'M1', authorJid: ada.jid, text: 'one' },
      { messageId: 'M2', authorJid: hedy.jid, text: 'two' },
      { messageId: 'M3', authorJid: ownJid, text: 'three' },
    ]);
  });

  describe('how far a message got', () => {
    it.each([
      ['SERVER_ACK', Status.SERVER_ACK],
      ['DELIVERY_ACK', Status.DELIVERY_ACK],
      ['READ', Status.READ],
      ['PLAYED', Status.PLAYED],
      ['ERROR', Status.ERROR],
    ])('%s', async (word, status) => {
      setting.network.socket.status(ada.jid, 'V1', status);
      await until('it is reported', () => setting.reported.statuses.length > 0);
      expect(setting.reported.statuses).toEqual([`V1 ${word}`]);
    });

    it('says nothing of the messages of others', async () => {
      setting.network.socket.emit({
        'messages.update': [
          { key: { remoteJid: ada.jid, fromMe: false, id: 'X' }, update: { status: Status.READ } },
        ],
      });
      setting.network.socket.status(ada.jid, 'V1', Status.READ);
      await until('the other is reported', () => setting.reported.statuses.length > 0);
      expect(setting.reported.statuses).toEqual(['V1 READ']);
    });

    it('in a group it is as far as the first of them has it', async () => {
      const key = { remoteJid: groupJid, fromMe: true, id: 'V1' };
      setting.network.socket.emit({
        'message-receipt.update': [
          { key, receipt: { userJid: ada.jid, receiptTimestamp: 5 } },
          // The account's own phone says that it has it, too.
          { key, receipt: { userJid: ownJid, readTimestamp: 5 } },
          { key, receipt: { userJid: hedy.jid, readTimestamp: 6 } },
        ],
      });
      await until('both are reported', () => setting.reported.statuses.length === 2);
      expect(setting.reported.statuses).toEqual(['V1 DELIVERY_ACK', 'V1 READ']);
    });

    it('is not held up by the sound of a message that is still being fetched', async () => {
      const held = Promise.withResolvers<void>();
      setting.reported.onMessage = () => held.promise;
      arrive(textFrom({}, { conversation: 'a' }));
      setting.network.socket.status(ada.jid, 'V1', Status.READ);
      await until('it is reported', () => setting.reported.statuses.length === 1);
      held.resolve();
    });
  });

  describe('calls', () => {
    const offer = {
      chatId: '5566@lid',
      from: '5566@lid',
      callerPn: ada.jid,
      id: 'C1',
      date: new Date(1_700_000_000_000),
      isVideo: true,
      offline: false,
    };

    it('with the caller’s phone number', async () => {
      setting.network.socket.emit({ call: [{ ...offer, status: 'offer' }] });
      setting.network.socket.emit({ call: [{ ...offer, status: 'relaylatency' }] });
      setting.network.socket.emit({ call: [{ ...offer, status: 'terminate' }] });
      await until('both are reported', () => setting.reported.calls.length === 2);
      const call = { callId: 'C1', fromJid: ada.jid, isVideo: true, timestampSeconds: 1_700_000_000 };
      expect(setting.reported.calls).toEqual([
        { ...call, status: 'offer' },
        { ...call, status: 'terminate' },
      ]);
    });

    it('are rejected at the address that WhatsApp gave', async () => {
      setting.network.socket.emit({ call: [{ ...offer, status: 'offer' }] });
      const call = await until('it is reported', () => setting.reported.calls[0]);
      await session.rejectCall(call);
      expect(setting.network.socket.callsOf('rejectCall')).toEqual([['C1', '5566@lid']]);
    });
  });

  it('presences', async () => {
    await learn('5566@lid', ada.jid);
    setting.network.socket.emit({
      'presence.update': { id: '5566@lid', presences: { '5566@lid': { lastKnownPresence: 'composing' } } },
    });
    await until('it is reported', () => setting.reported.presences.length === 1);
    expect(setting.reported.presences).toEqual([`${ada.jid} ${ada.jid} composing`]);
  });

  describe('changes of groups', () => {
    it('who came, went and rose, by phone number', async () => {
      const change = { id: groupJid, author: '5566@lid', authorPn: ada.jid };
      const participants = [{ id: '7788@lid', phoneNumber: hedy.jid }];
      for (const action of ['add', 'promote', 'modify', 'demote', 'remove'] as const) {
        setting.network.socket.emit({ 'group-participants.update': { ...change, participants, action } });
      }
      await until('all are reported', () => setting.reported.changes.length === 4);
      expect(setting.reported.changes).toEqual(
        ['add', 'promote', 'demote', 'remove'].map((action) => ({
          groupJid,
          action,
          participants: [hedy.jid],
          authorJid: ada.jid,
        })),
      );
    });

    it('a group that the account was put out of is no contact any more', async () => {
      setting.network.socket.emit({
        'groups.upsert': [{ id: groupJid, subject: 'The Sound Society', owner: undefined, participants: [] }],
      });
      await until('it is known', async () => (await session.contacts()).length === 1);
      setting.network.socket.emit({ 'groups.update': [{ id: groupJid, subject: 'Another name' }] });
      await until('its name is known', async () => (await session.contacts())[0]?.name === 'Another name');
      setting.network.socket.emit({
        'group-participants.update': {
          id: groupJid,
          author: ada.jid,
          participants: [{ id: ownJid }],
          action: 'remove',
        },
      });
      await until('it is gone', async () => (await session.contacts()).length === 0);
    });
  });

  it('nothing of what the gateway does itself, and nothing of what is nobody’s chat', () => {
    const { config } = setting.network.socket;
    // Baileys sees to both.
    expect(config.emitOwnEvents).toBe(false);
    const ignored = ['status@broadcast', '1@newsletter', ada.jid, '5566@lid', groupJid].filter((jid) =>
      config.shouldIgnoreJid?.(jid),
    );
    expect(ignored).toEqual(['status@broadcast', '1@newsletter']);
  });

  it('nothing of a connection that was given up', async () => {
    const { socket } = setting.network;
    await session.logout();
    socket.emit({
      'messages.upsert': { type: 'notify', messages: [textFrom({}, { conversation: 'late' })] },
    });
    await setting.restart();
    expect(setting.reported.messages).toEqual([]);
  });
});
