// @module-tag prosody
// @module-tag slixmpp
/** What others send to the account, and what they only pretend. */

import type { IncomingMessage } from 'soundpost-chat/transport';
import type { XmppPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Connected, jidOf, makeVoiceNote, numbers, startWorld, type World } from './xmpp-fixture.ts';

let world: World;
let ada: XmppPeer;
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

async function arrived(messageId: string): Promise<IncomingMessage> {
  const report = await instance.reported(
    `message ${messageId}`,
    (candidate) => candidate.kind === 'message' && candidate.message.messageId === messageId,
  );
  if (report.kind !== 'message') throw new Error('no message');
  return report.message;
}

const text = (fields: object): Promise<string> => ada.do('text', { to: instance.session.ownJid, ...fields });

describe('a message', () => {
  it('arrives as text, with its author and its time', async () => {
    const sinceSeconds = Math.floor(Date.now() / 1000);
    const message = await arrived(await text({ body: 'Gr\u00fc\u00dfe, <b>&amp;</b> \ud83c\udfbb' }));
    expect(message).toEqual({
      messageId: message.messageId,
      chatJid: jidOf(numbers.ada),
      isGroup: false,
      authorJid: jidOf(numbers.ada),
      authorName: numbers.ada,
      fromMe: false,
      isHistory: false,
      timestampSeconds: expect.any(Number),
      content: { kind: 'text', text: 'Gr\u00fc\u00dfe, <b>&amp;</b> \ud83c\udfbb' },
      context: { quoted: undefined, mentioned: [], mentionsEveryOne: false, linkPreview: false },
    });
    expect(message.timestampSeconds).toBeGreaterThanOrEqual(sinceSeconds);
    expect(message.timestampSeconds).toBeLessThanOrEqual(Date.now() / 1000);
  });

  it('with sound arrives as the address of the sound', async () => {
    const path = await makeVoiceNote(world.folder, 1);
    const { id, url } = await ada.do('voice', { to: instance.session.ownJid, path });
    expect((await arrived(id)).content).toEqual({ kind: 'url', url, fallback: url });
  });

  it('with a video arrives as the address of the video', async () => {
    const url = 'https://share.example/a.webm?x=1';
    await ada.do('forge', {
      stanza: `<message to="${instance.session.ownJid}" id="video" type="chat"><body>${url}</body><x xmlns="jabber:x:oob"><url>${url}</url></x></message>`,
    });
    const video = { mimetype: 'video/webm' };
    expect((await arrived('video')).content).toEqual({ kind: 'url', url, fallback: url, video });
  });

  it.each([
    ['a picture', 'https://share.example/a.png'],
    ['a file on the machine', 'file:///etc/passwd.ogg'],
  ])('with %s arrives as text', async (_what, url) => {
    await ada.do('forge', {
      stanza: `<message to="${instance.session.ownJid}" id="${url}" type="chat"><body>${url}</body><x xmlns="jabber:x:oob"><url>${url}</url></x></message>`,
    });
    expect((await arrived(url)).content).toEqual({ kind: 'text', text: url });
  });

  it('that answers another one has the quotation beside the text', async () => {
    await ada.do('forge', {
      stanza: `<message to="${instance.session.ownJid}" id="answer-1" type="chat"><body>&gt; \ud83c\udfbb How was it?\nLoud.</body><reply xmlns="urn:xmpp:reply:0" to="${instance.session.ownJid}/phone" id="asked-1"/><fallback xmlns="urn:xmpp:fallback:0" for="urn:xmpp:reply:0"><body start="0" end="16"/></fallback></message>`,
    });
    const { content, context } = await arrived('answer-1');
    expect(content).toEqual({ kind: 'text', text: 'Loud.' });
    expect(context.quoted).toEqual({
      id: 'asked-1',
      text: '\ud83c\udfbb How was it?',
      authorJid: instance.session.ownJid,
    });
  });

  it('that asks for a receipt gets one, once', async () => {
    const id = await text({ body: 'Did you get this?', receipt: true });
    await ada.seen('the receipt', ({ received }) => received === id);
    expect(ada.events.filter(({ received }) => received === id)).toHaveLength(1);
  });

  it('that another device of the account writes is the instance\u2019s own', async () => {
    const id = await ownDevice.do('text', { to: jidOf(numbers.ada), body: 'from my telephone' });
    expect(await arrived(id)).toMatchObject({
      chatJid: jidOf(numbers.ada),
      authorJid: jidOf(numbers.soundpost),
      fromMe: true,
      content: { kind: 'text', text: 'from my telephone' },
    });
  });
});

describe('somebody who pretends', () => {
  const own = jidOf(numbers.soundpost);
  const inner = `<message xmlns="jabber:client" from="${own}/phone" to="${jidOf(numbers.hedy)}" id="forged" type="chat"><body>I never wrote this</body></message>`;
  const copy = `<forwarded xmlns="urn:xmpp:forward:0"><delay xmlns="urn:xmpp:delay" stamp="2026-01-01T00:00:00Z"/>${inner}</forwarded>`;

  it.each([
    ['to be the server that copies messages', `<sent xmlns="urn:xmpp:carbons:2">${copy}</sent>`],
    ['to be the archive', `<result xmlns="urn:xmpp:mam:2" queryid="x" id="1">${copy}</result>`],
  ])('%s is not believed', async (_what, child) => {
    await ada.do('forge', { stanza: `<message to="${own}" type="chat" id="outer">${child}</message>` });
    await arrived(await text({ body: 'after the forgery' }));
    expect(JSON.stringify(instance.reports)).not.toContain('I never wrote this');
  });

  it('to be the roster is refused', async () => {
    const device = (
      await ownDevice.seen(
        'the instance',
        ({ event, from }) => event === 'presence' && from?.startsWith(`${own}/soundpost-`),
      )
    ).from;
    await ada.do('forge', {
      stanza: `<iq to="${device}" type="set" id="push-1"><query xmlns="jabber:iq:roster"><item jid="mallory@chat.example" name="Your bank" subscription="both"/></query></iq>`,
    });
    await arrived(await text({ body: 'after the push' }));
    expect((await instance.session.contacts()).map(({ name }) => name)).not.toContain('Your bank');
  });
});
