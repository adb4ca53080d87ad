import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import * as baileys from 'baileys';
import { parseAddress } from 'soundpost-chat/address';
import type { Chat } from 'soundpost-chat/transport';
import type { SocketEvents } from 'soundpost-chat-whatsapp/connection';
import type { WhatsAppSession } from 'soundpost-chat-whatsapp/session';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeFolder, run } from '../gateway-fixture.ts';
import { personJid, refusal } from './fake-whatsapp.ts';
import {
  ada,
  adasChat,
  hedy,
  OWN_NUMBER,
  plain,
  type Setting,
  startSetting,
  useSettings,
  voiceNote,
} from './whatsapp-fixture.ts';

let folder: { path: string; remove(): Promise<void> };
let note: string;
beforeAll(async () => {
  folder = await makeFolder();
  note = join(folder.path, 'note.ogg');
  const opus = ['-c:a', 'libopus', '-ac', '1', '-ar', '48000', '-b:a', '24k'];
  await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'sine=d=3', ...opus, note]);
});
afterAll(() => folder.remove());

const soon = (): AbortSignal => AbortSignal.timeout(10_000);

useSettings();

let setting: Setting;
let session: WhatsAppSession;
let groupJid: string;
let group: Chat;
beforeEach(async () => {
  setting = await startSetting();
  groupJid = setting.network.addGroup('120363000000000001', 'The Sound Society', {
    [personJid(OWN_NUMBER)]: 'superadmin',
    [ada.jid]: 'admin',
    [hedy.jid]: null,
  });
  group = { jid: groupJid, name: 'The Sound Society', isGroup: true };
  session = await setting.openSession();
  await until('the groups are known', async () => (await session.contacts()).length > 0);
});
afterEach(() => setting.close());

const learn = (lid: string, pn: string) =>
  setting.network.socket.signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn }]);
const address = (text: string) => parseAddress(text, 'number');
const audioOf = (index = 0) => setting.network.sent[index]?.message.message?.audioMessage;

describe('the operations of the WhatsApp transport, against a typed fake socket', () => {
  describe('finding who is meant', () => {
    it('asks WhatsApp for the number, once', async () => {
      expect(await session.resolve(address(`+49 151 00000001`), 'number')).toEqual({
        jid: ada.jid,
        name: ada.number,
        isGroup: false,
      });
      await session.resolve(address(ada.number), 'number');
      expect(setting.network.socket.callsOf('onWhatsApp')).toEqual([[ada.number]]);
    });

    it.each([
      ['5531987654321', '553187654321'],
      ['551187654321', '5511987654321'],
      ['525512345678', '5215512345678'],
      ['5215512345678', '525512345678'],
      ['541123456789', '5491123456789'],
    ])('finds %s under %s, the form that has an account', async (written, registered) => {
      setting.network.addPerson(registered, 'Somebody');
      expect((await session.resolve(address(written), 'number')).jid).toBe(personJid(registered));
    });

    it('takes the likelier form where both have one', async () => {
      setting.network.addPerson('5531987654321', 'Ghost');
      setting.network.addPerson('553187654321', 'Real');
      expect((await session.resolve(address('5531987654321'), 'number')).jid).toBe(personJid('553187654321'));
    });

    it('refuses a number that nobody has', async () => {
      await expect(session.resolve(address('4915199999999'), 'number')).rejects.toMatchObject({
        code: 'unknown_recipient',
        messages: ['number: WhatsApp has no person or group with this number'],
      });
    });

    it('finds an own group by its JID and by its digits, and no other', async () => {
      expect(await session.resolve(address(groupJid), 'number')).toEqual(group);
      expect(await session.resolve(address('120363000000000001'), 'number')).toEqual(group);
      await expect(session.resolve(address('120363000000000009@g.us'), 'number')).rejects.toMatchObject({
        code: 'unknown_recipient',
      });
    });

    it('knows a group of the old form, whose name has a hyphen', async () => {
      const jid = setting.network.addGroup('4915112345678-1400000000', 'Old', {});
      expect(await session.resolve(address(jid), 'number')).toMatchObject({ jid, name: 'Old' });
    });

    it('takes a LID as it is, and knows whose it is', async () => {
      await learn('5566@lid', ada.jid);
      expect((await session.resolve(address('5566@lid'), 'number')).jid).toBe(ada.jid);
      expect((await session.resolve(address('7788:3@lid'), 'number')).jid).toBe('7788@lid');
      expect(setting.network.socket.callsOf('onWhatsApp')).toEqual([]);
    });
  });

  describe('people by number and LID', () => {
    const sendTo = async (text: string): Promise<string | undefined> => {
      const chat = await session.resolve(address(text), 'number');
      await session.sendText({ messageId: randomUUID(), chat, text: 'Hello.' }, soon());
      return setting.network.sent.at(-1)?.jid;
    };

    it('are written to by LID where it is known, or WhatsApp tells it', async () => {
      expect(await sendTo(ada.number)).toBe(ada.jid);
      await learn('5566@lid', ada.jid);
      expect(await sendTo(ada.number)).toBe('5566@lid');
      expect(await sendTo('5566@lid')).toBe('5566@lid');
      expect(await sendTo('9900@lid')).toBe('9900@lid');
      // Somebody who has written, too, whom a look-up would not find.
      await learn('8811@lid', personJid('4915199999998'));
      expect(await sendTo('4915199999998')).toBe('8811@lid');
      setting.network.lids.set(hedy.jid, '7788@lid');
      expect(await sendTo(hedy.number)).toBe('7788@lid');
      await session.showPresence(adasChat, 'composing');
      expect(setting.network.socket.callsOf('sendPresenceUpdate').at(-1)).toEqual(['composing', '5566@lid']);
    });

    it('are changed and quoted as their LID, too', async () => {
      await learn('5566@lid', ada.jid);
      const key = { remoteJid: ada.jid, fromMe: true, id: 'T1' };
      await session.editMessage({ chat: adasChat, key, text: 'better', kind: 'text' });
      expect(setting.network.sent[0]?.message.message?.protocolMessage?.key?.remoteJid).toBe('5566@lid');
      const context = { ...plain, quoted: { id: 'Q9', text: 'well?' } };
      await session.sendVoice(voiceNote(note, { context }), soon());
      expect(audioOf(1)?.contextInfo).toMatchObject({ stanzaId: 'Q9', participant: '5566@lid' });
    });

    it('are one contact, one chat and one participant, also if the number comes last, over a restart', async () => {
      const { socket } = setting.network;
      socket.emit({ 'contacts.upsert': [{ id: '5566@lid', notify: 'Ada herself' }] });
      socket.emit({ 'chats.upsert': [{ id: '5566@lid', conversationTimestamp: 7 }] });
      socket.emit({ 'blocklist.update': { blocklist: ['5566@lid'], type: 'add' } });
      await until('the chat is known', async () => (await session.chats()).length === 1);
      expect((await session.contacts())[0]).toMatchObject({ jid: '5566@lid', blocked: true });
      socket.emit({ 'contacts.upsert': [{ id: ada.jid, lid: '5566@lid', name: 'Ada' }] });
      await until('she is one', async () => (await session.contacts())[0]?.jid === ada.jid);
      expect(await session.contacts()).toHaveLength(2);
      expect((await session.contacts())[0]).toMatchObject({ name: 'Ada', isSaved: true, blocked: true });
      setting.network.groups.get(groupJid)?.participants.splice(1, 1, { id: '5566@lid', admin: 'admin' });
      socket.emit({ 'groups.update': [...setting.network.groups.values()] });
      await until('the group has changed', async () =>
        (await session.participants(address(groupJid))).some(({ name }) => name === 'Ada'),
      );
      expect((await session.participants(address(groupJid))).map(({ jid }) => jid)).toEqual([
        ...[personJid(OWN_NUMBER), ada.jid, hedy.jid],
      ]);
      await setting.restart();
      const again = await setting.session();
      expect((await again.chats()).map(({ jid, name }) => [jid, name])).toEqual([[ada.jid, 'Ada']]);
      expect(await again.addressesOf('5566@lid')).toEqual([ada.jid, '5566@lid']);
    });

    it.each<[string, SocketEvents]>([
      [
        'a message',
        {
          'messages.upsert': {
            type: 'notify',
            messages: [{ key: { remoteJid: '5566@lid', remoteJidAlt: ada.jid, id: 'L1' }, message: {} }],
          },
        },
      ],
      [
        'a group',
        {
          'groups.upsert': [
            {
              ...{ id: '120363000000000008@g.us', subject: 'Late', owner: undefined },
              participants: [{ id: '5566@lid', phoneNumber: ada.jid }],
            },
          ],
        },
      ],
      ['a chat', { 'chats.upsert': [{ id: ada.jid, lidJid: '5566@lid' }] }],
    ])('are learned from %s', async (_, events) => {
      setting.network.socket.emit(events);
      await until('they are one', async () => (await session.addressesOf(ada.jid)).includes('5566@lid'));
    });
  });

  describe('the disappearing timer', () => {
    const WEEK = 604_800;
    const timer = async (chat: Chat): Promise<number | null | undefined> => {
      await session.sendText({ messageId: randomUUID(), chat, text: 'Hello.' }, soon());
      const { message } = setting.network.sent.at(-1)?.message ?? {};
      return message?.extendedTextMessage?.contextInfo?.expiration ?? undefined;
    };
    const said = (expiration: number, messageTimestamp: number) => {
      const extendedTextMessage = { text: 'hello', contextInfo: { expiration } };
      const key = { remoteJid: ada.jid, fromMe: false, id: randomUUID() };
      setting.network.socket.emit({
        'messages.upsert': {
          type: 'notify',
          messages: [{ key, message: { extendedTextMessage }, messageTimestamp }],
        },
      });
    };
    const set = (ephemeralExpiration: number | null, ephemeralSettingTimestamp: number) =>
      setting.network.socket.emit({
        'chats.update': [{ id: ada.jid, ephemeralExpiration, ephemeralSettingTimestamp }],
      });

    it('of a person is that of their messages, until it is turned off, and no late message brings it back', async () => {
      expect(await timer(adasChat)).toBeUndefined();
      said(WEEK, 1000);
      await until('it is known', async () => (await timer(adasChat)) === WEEK);
      set(null, 2000);
      await until('it is off', async () => (await timer(adasChat)) === undefined);
      said(WEEK, 1500);
      // What comes after it was handled, so it was, too.
      setting.network.socket.emit({ 'chats.upsert': [{ id: hedy.jid }] });
      const isChat = async () => (await session.chats()).some(({ jid }) => jid === hedy.jid);
      await until('it was handled', isChat);
      expect(await timer(adasChat)).toBeUndefined();
      set(86_400, 3000);
      await until('it is on', async () => (await timer(adasChat)) === 86_400);
    });

    it('of a group is that of its metadata, and changes with it', async () => {
      expect(await timer(group)).toBeUndefined();
      setting.network.socket.emit({ 'chats.update': [{ id: groupJid, ephemeralExpiration: WEEK }] });
      await until('it is known', async () => (await timer(group)) === WEEK);
      expect(setting.network.socket.callsOf('groupMetadata')).toEqual([]);
    });
  });

  describe('sending a voice message', () => {
    it('sends the note as it is, with length and waveform, and no other id', async () => {
      const message = voiceNote(note);
      await session.sendVoice(message, soon());
      expect(setting.network.sent).toHaveLength(1);
      const [sent] = setting.network.sent;
      expect(sent?.jid).toBe(ada.jid);
      expect(sent?.message.key.id).toBe(message.messageId);
      const audio = audioOf();
      expect(audio).toMatchObject({ ptt: true, seconds: 3, mimetype: 'audio/ogg; codecs=opus' });
      expect(Buffer.from(audio?.waveform ?? []).toString('base64')).toBe(message.content.waveform);
      const stream = await setting.network.library.downloadContentFromMessage(
        { directPath: audio?.directPath ?? '', mediaKey: audio?.mediaKey ?? Buffer.of() },
        'audio',
      );
      const received = await buffer(stream);
      expect(received.equals(await readFile(note))).toBe(true);
    });

    it('resolves when the server has taken it, not before', async () => {
      setting.network.acknowledges = false;
      let taken = false;
      const sending = session.sendVoice(voiceNote(note), soon()).then(() => {
        taken = true;
      });
      await until('it was sent', () => setting.network.sent.length === 1);
      await new Promise((resolve) => setImmediate(resolve));
      expect(taken).toBe(false);
      setting.network.socket.acknowledge(voiceNote(note).messageId);
      await sending;
      expect(setting.reported.statuses).toEqual([`${voiceNote(note).messageId} SERVER_ACK`]);
    });

    it('ends with the caller’s patience', async () => {
      setting.network.acknowledges = false;
      const controller = new AbortController();
      const sending = session.sendVoice(voiceNote(note), controller.signal);
      await until('it was sent', () => setting.network.sent.length === 1);
      controller.abort(new Error('no longer'));
      await expect(sending).rejects.toThrow('no longer');
    });

    it('is refused when the server refuses it, and the log hears nothing of it', async () => {
      setting.network.refused.set(voiceNote(note).messageId, '463');
      await expect(session.sendVoice(voiceNote(note), soon())).rejects.toMatchObject({
        code: 'network_refused',
        messages: ['WhatsApp is limiting whom this account may message (463)'],
      });
      expect(setting.reported.statuses).toEqual([]);
    });

    it('fails when the connection ends before the server has it', async () => {
      setting.network.acknowledges = false;
      const sending = session.sendVoice(voiceNote(note), soon());
      const failed = expect(sending).rejects.toMatchObject({ code: 'not_connected' });
      await until('it was sent', () => setting.network.sent.length === 1);
      setting.network.socket.drop(428);
      await failed;
    });

    it('fails without an exception’s text when the upload fails', async () => {
      setting.network.upload = async () => {
        throw new Error('secret host unreachable');
      };
      await expect(session.sendVoice(voiceNote(note), soon())).rejects.toMatchObject({
        code: 'network_refused',
        messages: ['WhatsApp refused to take the message'],
      });
      // Nobody waits for the server any more, and nobody is told when the connection ends.
      setting.network.socket.drop(428);
      await until(
        'it is open again',
        () => setting.network.sockets.length === 3 && session.state() === 'open',
      );
    });

    it('is the same message when it is sent again, and sent once when the server had it', async () => {
      setting.network.acknowledges = false;
      const given = new AbortController();
      const first = session.sendVoice(voiceNote(note), given.signal);
      await until('it was sent', () => setting.network.sent.length === 1);
      given.abort(new Error('the process died'));
      await expect(first).rejects.toThrow('the process died');
      setting.network.acknowledges = true;
      await session.sendVoice(voiceNote(note), soon());
      expect(setting.network.sent.map(({ message }) => message.key.id)).toEqual([
        voiceNote(note).messageId,
        voiceNote(note).messageId,
      ]);
      await setting.restart();
      const again = await setting.session();
      await until('it is open', () => again.state() === 'open');
      await again.sendVoice(voiceNote(note), soon());
      expect(setting.network.sent).toHaveLength(2);
    });

    it('gives the message to a device that asks for it again, also after a restart', async () => {
      await session.sendVoice(voiceNote(note), soon());
      await setting.restart();
      const again = await setting.session();
      await until('it is open', () => again.state() === 'open');
      const message = await setting.network.socket.config.getMessage?.({ id: voiceNote(note).messageId });
      expect(message?.audioMessage?.seconds).toBe(3);
      expect(await setting.network.socket.config.getMessage?.({ id: 'unknown' })).toBeUndefined();
    });

    it('quotes a message that it knows with its content and author', async () => {
      setting.network.socket.emit({
        'messages.upsert': {
          type: 'notify',
          messages: [
            {
              key: { remoteJid: groupJid, fromMe: false, id: 'Q1', participant: hedy.jid },
              message: { conversation: 'what do you say?' },
              messageTimestamp: 1_700_000_000,
            },
          ],
        },
      });
      await until('it arrived', () => setting.reported.messages.length === 1);
      const context = { ...plain, quoted: { id: 'Q1', text: undefined } };
      await session.sendVoice(voiceNote(note, { chat: group, context }), soon());
      expect(audioOf()?.contextInfo).toMatchObject({
        stanzaId: 'Q1',
        participant: hedy.jid,
        quotedMessage: { conversation: 'what do you say?' },
      });
    });

    it('quotes a message as one of this chat, under whichever address of the person it came', async () => {
      const key = { remoteJid: '5566@lid', remoteJidAlt: ada.jid, fromMe: false, id: 'Q3' };
      setting.network.socket.emit({
        'messages.upsert': { type: 'notify', messages: [{ key, message: { conversation: 'hello' } }] },
      });
      await until('it arrived', () => setting.reported.messages.length === 1);
      await until('they are one', async () => (await session.addressesOf(ada.jid)).length === 2);
      await session.sendVoice(
        voiceNote(note, { context: { ...plain, quoted: { id: 'Q3', text: undefined } } }),
        soon(),
      );
      expect(audioOf()?.contextInfo).toMatchObject({ stanzaId: 'Q3', participant: '5566@lid' });
      expect(audioOf()?.contextInfo?.remoteJid).toBeFalsy();
    });

    it('quotes a message that it does not know with the caller’s text', async () => {
      const context = { ...plain, quoted: { id: 'Q2', text: 'said long ago' } };
      await session.sendVoice(voiceNote(note, { context }), soon());
      expect(audioOf()?.contextInfo).toMatchObject({
        stanzaId: 'Q2',
        participant: ada.jid,
        quotedMessage: { conversation: 'said long ago' },
      });
    });

    it('names no group as the author of a message: one of unknown author is not quoted, one that the gateway has on record is', async () => {
      const quoted = { id: 'Q4', text: 'who said this?' };
      const send = () =>
        session.sendVoice(
          voiceNote(note, { messageId: randomUUID(), chat: group, context: { ...plain, quoted } }),
          soon(),
        );
      await send();
      expect(audioOf()?.contextInfo?.stanzaId).toBeFalsy();
      setting.logged.set('Q4', hedy.jid);
      await send();
      expect(audioOf(1)?.contextInfo).toMatchObject({ stanzaId: 'Q4', participant: hedy.jid });
    });

    it('sends a text that answers a message and mentions people', async () => {
      const context = { ...plain, quoted: { id: 'Q5', text: 'well?' }, mentioned: [hedy.jid] };
      await session.sendText?.(
        { messageId: randomUUID(), chat: adasChat, text: 'On my way.', context },
        soon(),
      );
      expect(setting.network.sent.at(-1)?.message.message?.extendedTextMessage).toMatchObject({
        text: 'On my way.',
        contextInfo: { stanzaId: 'Q5', participant: ada.jid, quotedMessage: { conversation: 'well?' } },
      });
    });

    it('mentions people by number or JID, as the group knows them', async () => {
      const lidGroup = setting.network.addGroup('120363000000000002', 'By number of its own', {});
      setting.network.groups.get(lidGroup)?.participants.push({ id: '5566@lid', phoneNumber: ada.jid });
      const chat = { jid: lidGroup, name: '', isGroup: true };
      const context = { ...plain, mentioned: [ada.number, hedy.jid] };
      await session.sendVoice(voiceNote(note, { chat, context }), soon());
      expect(audioOf()?.contextInfo?.mentionedJid).toEqual(['5566@lid', hedy.jid]);
    });

    it('mentions everyone', async () => {
      await session.sendVoice(
        voiceNote(note, { chat: group, context: { ...plain, mentionsEveryOne: true } }),
        soon(),
      );
      expect(audioOf()?.contextInfo?.mentionedJid).toEqual([personJid(OWN_NUMBER), ada.jid, hedy.jid]);
    });
  });

  describe('texts', () => {
    it('are sent under their id, and no address in them is fetched', async () => {
      await session.sendText({ messageId: 'T1', chat: adasChat, text: 'see https://example.com' }, soon());
      expect(setting.network.socket.callsOf('sendMessage')).toEqual([
        [ada.jid, { text: 'see https://example.com', linkPreview: null }, { messageId: 'T1' }],
      ]);
    });

    it('are changed by an edit of the message', async () => {
      const key = { remoteJid: ada.jid, fromMe: true, id: 'T1' };
      await session.editMessage({ chat: adasChat, key, text: 'better', kind: 'text' });
      const edit = setting.network.sent[0]?.message.message?.protocolMessage;
      expect(edit).toMatchObject({
        key,
        type: baileys.proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
        editedMessage: { extendedTextMessage: { text: 'better' } },
      });
    });

    it('a voice message cannot be given a caption', async () => {
      const key = { remoteJid: ada.jid, fromMe: true, id: 'V1' };
      await expect(
        session.editMessage({ chat: adasChat, key, text: 'caption', kind: 'voice' }),
      ).rejects.toMatchObject({ code: 'not_editable' });
      expect(setting.network.sent).toEqual([]);
    });
  });

  describe('presence', () => {
    it.each(['composing', 'recording', 'paused'] as const)('%s is shown in the chat', async (presence) => {
      await session.showPresence(adasChat, presence);
      expect(setting.network.socket.callsOf('sendPresenceUpdate')).toEqual([[presence, ada.jid]]);
    });

    it('is renewed every 10 s until it is paused', async () => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
      try {
        const shown = () => setting.network.socket.callsOf('sendPresenceUpdate').map(([word]) => word);
        await session.showPresence(adasChat, 'recording');
        await vi.advanceTimersByTimeAsync(45_000);
        await until('it was renewed', () => shown().length === 5);
        await session.showPresence(adasChat, 'paused');
        await vi.advanceTimersByTimeAsync(45_000);
        await session.showPresence(adasChat, 'paused');
        expect(shown()).toEqual([...Array.from({ length: 5 }, () => 'recording'), 'paused', 'paused']);
      } finally {
        vi.useRealTimers();
      }
    });

    it.each(['available', 'unavailable'] as const)('%s is shown to everybody', async (presence) => {
      await session.showPresence(adasChat, presence);
      expect(setting.network.socket.callsOf('sendPresenceUpdate')).toEqual([[presence, undefined]]);
    });
  });

  describe('contacts and chats', () => {
    it('hold what WhatsApp has told, and every group, by name', async () => {
      setting.network.socket.emit({
        'contacts.upsert': [{ id: ada.jid, name: 'Ada of the address book' }],
      });
      setting.network.socket.emit({
        'contacts.update': [
          { id: ada.jid, notify: 'Ada herself', imgUrl: 'https://pps.whatsapp.net/a.jpg' },
          { id: '7788@lid', phoneNumber: hedy.jid, notify: 'Hedy herself' },
          { id: 'status@broadcast', notify: 'nobody' },
        ],
      });
      await until('three are known', async () => (await session.contacts()).length === 3);
      expect(await session.contacts()).toEqual([
        {
          jid: ada.jid,
          name: 'Ada of the address book',
          isGroup: false,
          isSaved: true,
          blocked: false,
          profilePicUrl: 'https://pps.whatsapp.net/a.jpg',
        },
        { jid: hedy.jid, name: 'Hedy herself', isGroup: false, isSaved: false, blocked: false },
        { jid: groupJid, name: 'The Sound Society', isGroup: true, isSaved: true, blocked: false },
      ]);
    });

    it('come with the history after pairing, and are still known after a restart', async () => {
      setting.network.socket.emit({
        'messaging-history.set': {
          contacts: [{ id: ada.jid, name: 'Ada' }],
          chats: [
            { id: ada.jid, conversationTimestamp: 1_700_000_000 },
            { id: groupJid, conversationTimestamp: 1_700_000_100, name: 'The Sound Society' },
            { id: '0@newsletter', conversationTimestamp: 5 },
          ],
          messages: [],
        },
      });
      await until('chats are known', async () => (await session.chats()).length > 0);
      await setting.restart();
      const again = await setting.session();
      expect(await again.chats()).toEqual([
        { jid: groupJid, name: 'The Sound Society', isGroup: true, updatedAtMs: 1_700_000_100_000 },
        { jid: ada.jid, name: 'Ada', isGroup: false, updatedAtMs: 1_700_000_000_000 },
      ]);
      expect(await again.contacts()).toContainEqual(expect.objectContaining({ jid: ada.jid, isSaved: true }));
    });

    it('lose a chat that was deleted, and a group that the account has left meanwhile', async () => {
      setting.network.socket.emit({ 'chats.upsert': [{ id: ada.jid, conversationTimestamp: 5 }] });
      await until('the chat is known', async () => (await session.chats()).length === 1);
      setting.network.socket.emit({ 'chats.delete': [ada.jid] });
      await until('the chat is gone', async () => (await session.chats()).length === 0);
      setting.network.groups.clear();
      setting.network.socket.drop(428);
      await until('the group is gone', async () => (await session.contacts()).length === 0);
    });
  });

  describe('blocking', () => {
    it('blocks and unblocks, and contacts say so', async () => {
      setting.network.socket.emit({ 'contacts.upsert': [{ id: ada.jid, name: 'Ada' }] });
      const blocked = async (): Promise<boolean | undefined> =>
        (await session.contacts()).find(({ jid }) => jid === ada.jid)?.blocked;
      await until('Ada is known', async () => (await blocked()) === false);
      await session.setBlocked(adasChat, true);
      expect(setting.network.blocked).toEqual(new Set([ada.jid]));
      expect(await blocked()).toBe(true);
      await session.setBlocked(adasChat, false);
      expect(setting.network.blocked).toEqual(new Set());
      expect(await blocked()).toBe(false);
    });

    it('says that it cannot block somebody whose number is not known', async () => {
      setting.network.socket.updateBlockStatus = async () => {
        throw Object.assign(new Error('Unable to resolve PN JID'), { output: { statusCode: 400 } });
      };
      await expect(
        session.setBlocked({ jid: '9900@lid', name: '', isGroup: false }, true),
      ).rejects.toMatchObject({
        code: 'network_refused',
        messages: ['number: WhatsApp blocks only people whose phone number is known'],
      });
    });

    it('knows who was blocked on the phone', async () => {
      setting.network.socket.emit({ 'contacts.upsert': [{ id: ada.jid, name: 'Ada' }] });
      const blocked = async (): Promise<boolean> =>
        (await session.contacts()).some((contact) => contact.jid === ada.jid && contact.blocked);
      setting.network.socket.emit({ 'blocklist.update': { blocklist: [ada.jid], type: 'add' } });
      await until('Ada is blocked', blocked);
      setting.network.socket.emit({ 'blocklist.update': { blocklist: [ada.jid], type: 'remove' } });
      await until('Ada is not blocked', async () => !(await blocked()));
      setting.network.blocked.add(ada.jid);
      setting.network.socket.drop(428);
      await until('Ada is blocked again', blocked);
      setting.network.blocked.clear();
      setting.network.socket.drop(428);
      await until('Ada is not blocked any more', async () => !(await blocked()));
    });
  });

  describe('groups', () => {
    it('tell their participants with their ranks', async () => {
      setting.network.socket.emit({ 'contacts.upsert': [{ id: ada.jid, name: 'Ada' }] });
      await until('Ada is known', async () => (await session.contacts()).length === 2);
      expect(await session.participants(address(groupJid))).toEqual([
        { jid: personJid(OWN_NUMBER), name: OWN_NUMBER, admin: 'superadmin' },
        { jid: ada.jid, name: 'Ada', admin: 'admin' },
        { jid: hedy.jid, name: hedy.number, admin: null },
      ]);
    });

    it('ask for them once until something changes', async () => {
      await session.participants(address(groupJid));
      await session.participants(address(groupJid));
      // They came with the list of all groups.
      expect(setting.network.socket.callsOf('groupMetadata')).toEqual([]);
      expect(await setting.network.socket.config.cachedGroupMetadata?.(groupJid)).toMatchObject({
        id: groupJid,
      });
      setting.network.groups.get(groupJid)?.participants.pop();
      setting.network.socket.emit({
        'group-participants.update': {
          id: groupJid,
          author: ada.jid,
          action: 'remove',
          participants: [{ id: hedy.jid }],
        },
      });
      await until('it was reported', () => setting.reported.changes.length === 1);
      expect(await session.participants(address(groupJid))).toHaveLength(2);
      expect(setting.network.socket.callsOf('groupMetadata')).toHaveLength(1);
    });

    it('are asked for once by messages that are sent at once, and again after ten minutes', async () => {
      const later = setting.network.addGroup('120363000000000003', 'Later', { [ada.jid]: null });
      const lookUp = () => setting.network.socket.config.cachedGroupMetadata?.(later);
      await Promise.all([lookUp(), lookUp(), lookUp()]);
      expect(setting.network.socket.callsOf('groupMetadata')).toEqual([[later]]);
      const now = performance.now();
      vi.spyOn(performance, 'now').mockReturnValue(now + 10 * 60 * 1000 + 1);
      await lookUp();
      vi.restoreAllMocks();
      expect(setting.network.socket.callsOf('groupMetadata')).toEqual([[later], [later]]);
    });

    it('get a new sender key when their members change', async () => {
      const { keys, creds } = setting.network.socket.config.auth;
      const [user, device] = creds.me?.id.split('@')[0]?.split(':') ?? [];
      const name = `${groupJid}::${user}::${device}`;
      await keys.set({
        'sender-key': { [name]: Buffer.from('key') },
        'sender-key-memory': { [groupJid]: { [hedy.jid]: true } },
      });
      setting.network.socket.emit({
        'group-participants.update': {
          ...{ id: groupJid, author: ada.jid, action: 'remove' },
          participants: [{ id: hedy.jid }],
        },
      });
      await until('it was reported', () => setting.reported.changes.length === 1);
      expect(await keys.get('sender-key', [name])).toEqual({});
      expect(await keys.get('sender-key-memory', [groupJid])).toEqual({});
    });

    it('give, change and honour an invite code', async () => {
      const first = await session.inviteCode(address(groupJid));
      expect(first.inviteUrl).toBe(`https://chat.whatsapp.com/${first.inviteCode}`);
      const second = await session.revokeInvite(address(groupJid));
      expect(second.inviteCode).not.toBe(first.inviteCode);
      expect(await session.acceptInvite(second.inviteCode)).toEqual({ groupJid });
      await expect(session.acceptInvite(first.inviteCode)).rejects.toMatchObject({ code: 'group_not_found' });
    });

    it('are not found when the account is not in them', async () => {
      const elsewhere = address('120363999999999999@g.us');
      await expect(session.participants(elsewhere)).rejects.toMatchObject({ code: 'group_not_found' });
      await expect(session.inviteCode(elsewhere)).rejects.toMatchObject({ code: 'group_not_found' });
      await expect(session.revokeInvite(elsewhere)).rejects.toMatchObject({ code: 'group_not_found' });
    });

    it('refuse an invite code to who is no admin', async () => {
      setting.network.socket.groupInviteCode = async () => {
        throw refusal(401);
      };
      await expect(session.inviteCode(address(groupJid))).rejects.toMatchObject({
        code: 'network_refused',
        messages: ['groupJid: only admins of the group may do this'],
      });
    });

    it('invite a person with a text that holds the link', async () => {
      const { inviteUrl, inviteCode } = await session.inviteCode(address(groupJid));
      const text = `Come in\n${inviteUrl}`;
      await session.sendInvite(
        {
          messageId: 'I1',
          chat: adasChat,
          group: address(groupJid),
          inviteUrl,
          inviteCode,
          description: 'Come in',
          text,
        },
        soon(),
      );
      expect(setting.network.sent[0]).toMatchObject({
        jid: ada.jid,
        message: { key: { id: 'I1' }, message: { extendedTextMessage: { text } } },
      });
    });
  });

  describe('privacy settings', () => {
    it('are asked for each time', async () => {
      const expected = {
        readreceipts: 'all',
        profile: 'contacts',
        status: 'contact_blacklist',
        online: 'match_last_seen',
        last: 'none',
        groupadd: 'contacts',
      };
      expect(await session.privacySettings()).toEqual(expected);
      setting.network.privacy.last = 'all';
      expect(await session.privacySettings()).toEqual({ ...expected, last: 'all' });
      expect(setting.network.socket.callsOf('fetchPrivacySettings')).toEqual([[true], [true]]);
    });

    it('are not guessed when WhatsApp uses a word that is new', async () => {
      setting.network.privacy.last = 'friends_of_friends';
      await expect(session.privacySettings()).rejects.toMatchObject({ code: 'network_refused' });
    });
  });

  describe('settings', () => {
    it('alwaysOnline is shown at once, and when the connection comes back', async () => {
      await session.applySettings({ ...setting.instance.settings, alwaysOnline: true });
      expect(setting.network.socket.callsOf('sendPresenceUpdate')).toEqual([['available', undefined]]);
      expect(setting.network.socket.config.markOnlineOnConnect).toBe(false);
      setting.network.socket.drop(428);
      await until('it is back', () => setting.network.sockets.length === 3 && session.state() === 'open');
      expect(setting.network.socket.config.markOnlineOnConnect).toBe(true);
    });

    it('syncFullHistory is asked for when the instance connects', async () => {
      const { config } = setting.network.socket;
      expect(config.syncFullHistory).toBe(false);
      await session.applySettings({ ...setting.instance.settings, syncFullHistory: true });
      setting.network.socket.drop(428);
      await until('it is back', () => setting.network.sockets.length === 3);
      expect(setting.network.socket.config.syncFullHistory).toBe(true);
      expect(setting.network.socket.config.shouldSyncHistoryMessage?.({})).toBe(true);
    });
  });

  it('a request under way when the connection breaks says so', async () => {
    // Baileys rejects it with the close code of the WebSocket and nothing else.
    setting.network.socket.fetchPrivacySettings = () => Promise.reject(1006);
    await expect(session.privacySettings()).rejects.toMatchObject({ code: 'not_connected' });
  });

  it('a request that WhatsApp answers with "slow down" says so', async () => {
    setting.network.socket.updateBlockStatus = async () => {
      throw refusal(429);
    };
    await expect(session.setBlocked(adasChat, true)).rejects.toMatchObject({ code: 'rate_limited' });
  });
});
