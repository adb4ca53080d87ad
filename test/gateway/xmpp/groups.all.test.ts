// @module-tag prosody
// @module-tag slixmpp
/** Rooms: who is in them, how one gets in, and what is said there. */

import { parseAddress } from 'soundpost-chat/address';
import { ROOMS } from 'soundpost-testing/prosody';
import type { PeerEvent, XmppPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Connected, jidOf, makeVoiceNote, numbers, startWorld, type World } from './xmpp-fixture.ts';

const room = `soundpost@${ROOMS}`;
const group = parseAddress(room, 'groupJid');

let world: World;
let ada: XmppPeer;
let hedy: XmppPeer;
/** Another device of the instance's own account: it makes the room and keeps it. */
let ownDevice: XmppPeer;
let instance: Connected;
let note: string;

beforeAll(async () => {
  world = await startWorld();
  [ada, hedy, ownDevice, instance, note] = await Promise.all([
    world.peer(numbers.ada),
    world.peer(numbers.hedy),
    world.peer(numbers.soundpost),
    world.connect(),
    makeVoiceNote(world.folder, 1),
  ]);
  await enter(ownDevice, 'founder');
  await ownDevice.do('configure', { room, fields: { 'muc#roomconfig_whois': 'anyone' } });
  await ownDevice.do('affiliate', { room, jid: ada.jid, affiliation: 'admin' });
  await enter(ada, 'ada');
  await ownDevice.do('publish', {
    node: 'urn:xmpp:bookmarks:1',
    item: room,
    payload:
      '<conference xmlns="urn:xmpp:bookmarks:1" name="The Sound Society" autojoin="1"><nick>post</nick></conference>',
    options: { 'pubsub#persist_items': 'true', 'pubsub#access_model': 'whitelist' },
  });
  await ada.seen('the instance in the room', (event) => isPresence(event, `${room}/post`));
});
afterAll(() => world.close());

const isPresence = (event: PeerEvent, from: string, type = 'available'): boolean =>
  event.event === 'presence' && event.from === from && event.type === type;

async function enter(peer: XmppPeer, nick: string, password = ''): Promise<boolean> {
  const before = peer.events.length;
  await peer.do('join', { room, nick, password });
  const answer = await peer.seen(
    'the room',
    (event) =>
      peer.events.indexOf(event) >= before && event.event === 'presence' && event.from === `${room}/${nick}`,
  );
  return answer.type === 'available';
}

const inRoom = (event: PeerEvent): boolean => event.event === 'message' && event.type === 'groupchat';

describe('a group', () => {
  it('is kept by the account, and found among its contacts and chats', async () => {
    const entry = { jid: room, name: 'The Sound Society', isGroup: true };
    expect(await instance.session.contacts()).toContainEqual({ ...entry, isSaved: true, blocked: false });
    expect(await instance.session.chats?.()).toContainEqual({ ...entry, updatedAtMs: null });
    expect(await instance.chat(room)).toEqual(entry);
  });

  it.each([`nothing@${ROOMS}`, jidOf(numbers.ada), '120363000000000009@g.us'])(
    '%s is none that the instance is in',
    async (text) => {
      const asked = instance.session.participants?.(parseAddress(text, 'groupJid'));
      await expect(asked).rejects.toMatchObject({ code: 'group_not_found' });
    },
  );

  it('lists its participants with their rank', async () => {
    const participants = (await instance.session.participants?.(group)) ?? [];
    expect(participants.map(({ jid, admin }) => [jid, admin]).toSorted()).toEqual(
      [
        [jidOf(numbers.soundpost), 'superadmin'],
        [jidOf(numbers.ada), 'admin'],
      ].toSorted(),
    );
  });

  it('tells who comes, rises, falls and goes', async () => {
    const change = (action: string) =>
      instance.reported(
        action,
        (report) => report.kind === 'participants' && report.change.action === action,
      );
    const affiliate = (affiliation: string) =>
      ownDevice.do('affiliate', { room, jid: hedy.jid, affiliation });
    for (const [affiliation, action] of [
      ['member', 'add'],
      ['admin', 'promote'],
      ['member', 'demote'],
      ['none', 'remove'],
    ] as const) {
      await affiliate(affiliation);
      const report = await change(action);
      expect(report).toMatchObject({ change: { groupJid: room, participants: [hedy.jid] } });
    }
  });
});

describe('what is said in a group', () => {
  it('arrives with its author, and can be quoted by the id that the room gave it', async () => {
    const id = await ada.do('text', { to: room, body: 'Who plays?', kind: 'groupchat' });
    const report = await instance.reported(
      'the question',
      (candidate) => candidate.kind === 'message' && candidate.message.messageId === id,
    );
    if (report.kind !== 'message') throw new Error('no message');
    expect(report.message).toMatchObject({
      chatJid: room,
      isGroup: true,
      authorJid: ada.jid,
      authorName: 'ada',
      content: { kind: 'text', text: 'Who plays?' },
    });
    const roomId = (await ada.seen('its reflection', (event) => inRoom(event) && event.id === id)).stanzaId;
    const answer = await instance.voice(room, note, { quoted: { id, text: 'Who plays?' } });
    const seen = await ada.seen('the answer', (event) => inRoom(event) && event.id === answer);
    expect(seen.reply).toEqual({ id: roomId, to: ada.jid });
    expect(roomId).not.toBe(id);
  });

  it('has what it quotes, with the author, and whom it mentions', async () => {
    await ada.do('forge', {
      stanza: `<message to="${room}" id="quoting-1" type="groupchat"><body>Hedy does.</body><reply xmlns="urn:xmpp:reply:0" to="${hedy.jid}/phone" id="asked-1"/><reference xmlns="urn:xmpp:reference:0" type="mention" uri="xmpp:${hedy.jid}"/></message>`,
    });
    const report = await instance.reported(
      'the answer',
      (candidate) => candidate.kind === 'message' && candidate.message.messageId === 'quoting-1',
    );
    expect(report).toMatchObject({
      message: {
        authorJid: ada.jid,
        context: { quoted: { id: 'asked-1', authorJid: hedy.jid }, mentioned: [hedy.jid] },
      },
    });
  });

  it('comes back to its author once, who does not get it as news', async () => {
    const id = await instance.voice(room, note);
    await instance.reported(
      'the acknowledgement',
      (report) => report.kind === 'status' && report.messageId === id,
    );
    expect(instance.statuses(id)).toEqual(['SERVER_ACK']);
    const seen = await ada.seen('the message', (event) => inRoom(event) && event.id === id);
    // Everybody in the room would answer.
    expect(seen.receiptAsked).toBe(false);
    expect(
      instance.reports.filter((report) => report.kind === 'message' && report.message.messageId === id),
    ).toEqual([]);
  });

  it('can mention everybody, and leaves the text the address alone', async () => {
    const id = await instance.voice(room, note, { mentionsEveryOne: true });
    const seen = await ada.seen('the message', (event) => inRoom(event) && event.id === id);
    expect(seen.references.map(({ uri }: PeerEvent) => uri)).toEqual([`xmpp:${ada.jid}`]);
    expect(seen.body).toBe(seen.oob);
  });
});

describe('an invitation', () => {
  it('lets in whoever has the right code, and nobody with a wrong or an old one', async () => {
    const first = await instance.session.inviteCode?.(group);
    expect(first?.inviteUrl).toBe(`xmpp:${room}?join;password=${first?.inviteCode}`);
    expect(await instance.session.inviteCode?.(group)).toEqual(first);
    expect(await enter(hedy, 'hedy', 'a guess')).toBe(false);
    expect(await enter(hedy, 'hedy', first?.inviteCode)).toBe(true);
    const second = await instance.session.revokeInvite?.(group);
    expect(second?.inviteCode).not.toBe(first?.inviteCode);
    const nikola = await world.peer(numbers.nikola);
    expect(await enter(nikola, 'nikola', first?.inviteCode)).toBe(false);
    expect(await enter(nikola, 'nikola', second?.inviteCode)).toBe(true);
  });

  it('reaches the person with the code and the words that go with it', async () => {
    const { inviteUrl = '', inviteCode = '' } = (await instance.session.inviteCode?.(group)) ?? {};
    const chat = await instance.chat(numbers.hedy);
    await instance.session.sendInvite?.(
      {
        messageId: 'invite-1',
        chat,
        group,
        inviteUrl,
        inviteCode,
        description: 'Come and listen',
        text: `Come and listen\n\n${inviteUrl}`,
      },
      AbortSignal.timeout(10_000),
    );
    const seen = await hedy.seen('the invitation', ({ id }) => id === 'invite-1');
    expect(seen.invite).toEqual({ jid: room, password: inviteCode, reason: 'Come and listen' });
    expect(seen.body).toContain(inviteUrl);
  });

  it('that somebody sends can be accepted by its code, or by its address', async () => {
    const theirs = `concert@${ROOMS}`;
    await ada.do('join', { room: theirs, nick: 'ada' });
    await ada.seen('the room', (event) => isPresence(event, `${theirs}/ada`));
    await ada.do('configure', { room: theirs, fields: { 'muc#roomconfig_roomsecret': 'the code' } });
    const accept = (code: string) => instance.session.acceptInvite?.(code);
    await expect(accept('the code')).rejects.toMatchObject({ code: 'group_not_found' });
    await expect(accept(`xmpp:${theirs}?join;password=wrong`)).rejects.toMatchObject({
      code: 'group_not_found',
    });
    await expect(accept(`xmpp:nothing@${ROOMS}?join;password=x`)).rejects.toMatchObject({
      code: 'group_not_found',
    });
    await ada.do('invite', { to: instance.session.ownJid, room: theirs, password: 'the code' });
    await ada.do('text', { to: instance.session.ownJid, body: 'after the invitation' });
    await instance.reported(
      'what came after',
      (report) =>
        report.kind === 'message' &&
        report.message.content.kind === 'text' &&
        report.message.content.text === 'after the invitation',
    );
    expect(await accept('the code')).toEqual({ groupJid: theirs });
    expect(await accept(`xmpp:${theirs}?join;password=the%20code`)).toEqual({ groupJid: theirs });
    const kept = (await instance.session.contacts()).map(({ jid }) => jid);
    expect(kept).toEqual(expect.arrayContaining([room, theirs]));
  });
});

it('a group with a code is entered again after a restart, and what was missed is caught up with', async () => {
  await instance.session.inviteCode?.(group);
  await instance.close();
  await ada.seen('it leave', (event) => isPresence(event, `${room}/post`, 'unavailable'));
  const missed = await ada.do('text', { to: room, body: 'While you were away', kind: 'groupchat' });
  const again = await world.connect({ instance: instance.instance });
  const report = await again.reported(
    'the missed message',
    (candidate) => candidate.kind === 'message' && candidate.message.messageId === missed,
  );
  expect(report).toMatchObject({ message: { content: { text: 'While you were away' }, authorJid: ada.jid } });
  const id = await again.voice(room, note);
  await ada.seen('the message', (event) => inRoom(event) && event.id === id);
});
