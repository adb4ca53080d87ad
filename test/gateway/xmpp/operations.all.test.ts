// @module-tag prosody
// @module-tag slixmpp
/** The operations beside sending, on a real server: what is asked of it, and what the other side sees. */

import { DOMAIN } from 'soundpost-testing/prosody';
import type { PeerEvent, XmppPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Connected, jidOf, numbers, startWorld, type World } from './xmpp-fixture.ts';

let world: World;
let ada: XmppPeer;
/** Another device of the instance's own account, by the other implementation. */
let ownDevice: XmppPeer;
let instance: Connected;

beforeAll(async () => {
  world = await startWorld();
  [ada, ownDevice, instance] = await Promise.all([
    world.peer(numbers.ada),
    world.peer(numbers.soundpost),
    world.connect(),
  ]);
});
afterAll(() => world.close());

const message = (fits: (event: PeerEvent) => boolean) => (event: PeerEvent) =>
  event.event === 'message' && fits(event);

describe('numbers', () => {
  it.each([
    [numbers.ada, jidOf(numbers.ada)],
    ['+1 (202) 555-0112', jidOf(numbers.ada)],
    [`${numbers.ada}@s.whatsapp.net`, jidOf(numbers.ada)],
    [jidOf(numbers.ada).toUpperCase(), jidOf(numbers.ada)],
    [`ada.lovelace@${DOMAIN}`, `ada.lovelace@${DOMAIN}`],
    ['somebody@elsewhere.example', 'somebody@elsewhere.example'],
  ])('%s means %s', async (text, jid) => {
    expect(await instance.chat(text)).toMatchObject({ jid, isGroup: false });
  });
});

describe('presence', () => {
  it.each([
    ['composing', 'composing'],
    ['recording', 'composing'],
    ['paused', 'paused'],
  ] as const)('%s is seen as %s', async (presence, state) => {
    const before = ada.events.length;
    await instance.session.showPresence(await instance.chat(numbers.ada), presence);
    await ada.seen(state, (event) => ada.events.indexOf(event) >= before && event.states?.includes(state));
  });

  it.each(['available', 'unavailable'] as const)('%s is seen as it is', async (presence) => {
    const before = ada.events.length;
    await instance.session.showPresence(await instance.chat(numbers.ada), presence);
    await ada.seen(
      presence,
      (event) =>
        ada.events.indexOf(event) >= before &&
        event.event === 'presence' &&
        event.type === presence &&
        event.from.startsWith(instance.session.ownJid),
    );
  });

  it('of the other side is told live', async () => {
    await ada.do('state', { to: instance.session.ownJid, name: 'composing' });
    await instance.reported(
      'the typing',
      (report) =>
        report.kind === 'presence' && report.presence === 'composing' && report.whose === jidOf(numbers.ada),
    );
  });
});

describe('an edit', () => {
  it('of a text replaces it for the other side', async () => {
    const id = await instance.text(numbers.ada, 'The first wording');
    const key = { remoteJid: jidOf(numbers.ada), fromMe: true, id };
    const chat = await instance.chat(numbers.ada);
    await instance.session.editMessage?.({ chat, key, text: 'The second wording', kind: 'text' });
    await instance.session.editMessage?.({ chat, key, text: 'The third wording', kind: 'text' });
    const third = await ada.seen(
      'the third',
      message(({ body }) => body === 'The third wording'),
    );
    expect(third.replace).toBe(id);
    expect(third.id).not.toBe(id);
  });

  it('of a voice message is refused, since it would replace the sound', async () => {
    const key = { remoteJid: jidOf(numbers.ada), fromMe: true, id: 'any' };
    const chat = await instance.chat(numbers.ada);
    const edit = instance.session.editMessage?.({ chat, key, text: 'a caption', kind: 'voice' });
    await expect(edit).rejects.toMatchObject({ code: 'not_editable' });
  });

  it('by the other side is told with the id of the first wording', async () => {
    const id = await ada.do('text', { to: instance.session.ownJid, body: 'My first wording' });
    await ada.do('text', { to: instance.session.ownJid, body: 'My second wording', replace: id });
    const report = await instance.reported('the edit', ({ kind }) => kind === 'edit');
    expect(report).toEqual({
      kind: 'edit',
      edit: { messageId: id, authorJid: jidOf(numbers.ada), text: 'My second wording' },
    });
  });
});

describe('a blocked contact', () => {
  it('has its messages bounce until it is unblocked', async () => {
    const chat = await instance.chat(numbers.ada);
    await instance.session.setBlocked?.(chat, true);
    expect(await instance.session.contacts()).toContainEqual(
      expect.objectContaining({ jid: jidOf(numbers.ada), blocked: true }),
    );
    const id = await ada.do('text', { to: instance.session.ownJid, body: 'Can you hear me?' });
    const bounced = await ada.seen(
      'the bounce',
      message((event) => event.error !== null && event.id === id),
    );
    expect(bounced.error).toContain('service-unavailable');
    await instance.session.setBlocked?.(chat, false);
    await ada.do('text', { to: instance.session.ownJid, body: 'And now?' });
    await instance.reported(
      'the second',
      (report) =>
        report.kind === 'message' &&
        report.message.content.kind === 'text' &&
        report.message.content.text === 'And now?',
    );
    expect(instance.reports).not.toContainEqual(
      expect.objectContaining({ message: expect.objectContaining({ messageId: id }) }),
    );
    expect(await instance.session.contacts()).not.toContainEqual(expect.objectContaining({ blocked: true }));
  });
});

describe('contacts', () => {
  it('are the roster, by the name there or on the card', async () => {
    await ada.do('name_card', { name: 'Ada Lovelace' });
    await ownDevice.do('rename', { jid: jidOf(numbers.ada), name: '' });
    await ownDevice.do('rename', { jid: jidOf(numbers.hedy), name: 'Hedy' });
    const found = async () => (await instance.session.contacts()).filter(({ isGroup }) => !isGroup);
    await expect.poll(found).toHaveLength(2);
    expect(await found()).toEqual(
      expect.arrayContaining([
        { jid: jidOf(numbers.ada), name: 'Ada Lovelace', isGroup: false, isSaved: true, blocked: false },
        { jid: jidOf(numbers.hedy), name: 'Hedy', isGroup: false, isSaved: true, blocked: false },
      ]),
    );
    await ownDevice.do('rename', { jid: jidOf(numbers.hedy), name: 'Hedy Lamarr' });
    await expect.poll(found).toContainEqual(expect.objectContaining({ name: 'Hedy Lamarr' }));
  });
});

describe('chats', () => {
  it('are what the archive holds, by peer, with the time of the newest message', async () => {
    const startedMs = Date.now();
    const before = (await instance.session.chats?.()) ?? [];
    expect(before.map(({ jid }) => jid)).not.toContain(jidOf(numbers.hedy));
    // Written by another device, so that the gateway's own log knows nothing of it.
    await ownDevice.do('text', { to: jidOf(numbers.hedy), body: 'from the other device' });
    await expect
      .poll(async () => (await instance.session.chats?.())?.map(({ jid }) => jid))
      .toContain(jidOf(numbers.hedy));
    const hedy = (await instance.session.chats?.())?.find(({ jid }) => jid === jidOf(numbers.hedy));
    expect(hedy?.isGroup).toBe(false);
    expect(hedy?.updatedAtMs).toBeGreaterThan(startedMs - 2000);
  });
});

describe('privacy settings', () => {
  it('are composed from what the account has set on its server', async () => {
    expect(await instance.session.privacySettings?.()).toMatchObject({
      readreceipts: 'none',
      profile: 'contacts',
      status: 'all',
      online: 'match_last_seen',
      groupadd: 'none',
    });
    await ownDevice.do('publish', {
      node: 'urn:xmpp:avatar:metadata',
      item: 'a1',
      payload: '<metadata xmlns="urn:xmpp:avatar:metadata"/>',
      options: { 'pubsub#access_model': 'open' },
    });
    await ownDevice.do('archive_preference', { default: 'roster' });
    await instance.session.applySettings?.({ ...instance.instance.settings, readMessages: true });
    expect(await instance.session.privacySettings?.()).toMatchObject({
      readreceipts: 'all',
      profile: 'all',
      status: 'contacts',
    });
  });

  it('say whether anybody sees when the account was there last', async () => {
    expect((await instance.session.privacySettings?.())?.last).toBe('none');
    await ada.do('subscribe', { to: instance.session.ownJid });
    await ownDevice.seen('the request', ({ type }) => type === 'subscribe');
    await ownDevice.do('approve', { to: jidOf(numbers.ada) });
    await expect.poll(async () => (await instance.session.privacySettings?.())?.last).toBe('contacts');
  });
});

describe('a call', () => {
  const offered = (callId: string) =>
    instance.reported(
      'the call',
      (report) => report.kind === 'call' && report.call.callId === callId && report.call.status === 'offer',
    );

  it('is offered, and rejected as busy when it shall be', async () => {
    await ada.do('call', { to: instance.session.ownJid, id: 'call-1' });
    const report = await offered('call-1');
    if (report.kind !== 'call') throw new Error('no call');
    expect(report.call).toMatchObject({ fromJid: jidOf(numbers.ada), isVideo: false });
    await instance.session.rejectCall?.(report.call);
    const rejected = await ada.seen(
      'the rejection',
      message(({ call }) => call?.name === 'reject'),
    );
    expect(rejected.call).toEqual({ name: 'reject', id: 'call-1', inside: ['{urn:xmpp:jingle:1}reason'] });
  });

  it('ends when the caller hangs up', async () => {
    await ada.do('call', { to: instance.session.ownJid, id: 'call-2' });
    await offered('call-2');
    await ada.do('hang_up', { to: instance.session.ownJid, id: 'call-2' });
    await instance.reported(
      'its end',
      (report) =>
        report.kind === 'call' && report.call.callId === 'call-2' && report.call.status === 'terminate',
    );
  });
});

describe('the setting', () => {
  it('readMessages sends markers for what arrives, and without it none', async () => {
    const to = instance.session.ownJid;
    await instance.session.applySettings?.({ ...instance.instance.settings, readMessages: false });
    const unread = await ada.do('text', { to, body: 'one', receipt: true, markable: true });
    await ada.seen(
      'the receipt',
      message(({ received }) => received === unread),
    );
    await instance.session.applySettings?.({ ...instance.instance.settings, readMessages: true });
    const read = await ada.do('text', { to, body: 'two', receipt: true, markable: true });
    await ada.seen(
      'the marker',
      message(({ displayed }) => displayed === read),
    );
    expect(ada.events).not.toContainEqual(expect.objectContaining({ displayed: unread }));
  });

  it('alwaysOnline shows the account as there, and without it as away', async () => {
    const shows = () =>
      ownDevice.events
        .filter((event) => event.event === 'presence' && event.from?.includes('/soundpost-'))
        .map(({ show }) => show);
    await expect.poll(shows).toEqual(['away']);
    await instance.session.applySettings?.({ ...instance.instance.settings, alwaysOnline: true });
    await expect.poll(shows).toEqual(['away', null]);
    await instance.session.applySettings?.({ ...instance.instance.settings, alwaysOnline: false });
    await expect.poll(shows).toEqual(['away', null, 'away']);
  });
});
