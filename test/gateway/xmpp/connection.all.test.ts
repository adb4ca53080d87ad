// @module-tag prosody
// @module-tag slixmpp
/** What happens to messages and to the connection when something between gateway and server breaks. */

import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import type { PeerEvent, XmppPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CuttableLine, startCuttableLine } from './cuttable-line.ts';
import { type Connected, makeVoiceNote, newId, numbers, startWorld, type World } from './xmpp-fixture.ts';

const occurrences = (text: string, part: string): number => text.split(part).length - 1;
const messagesWithId = (peer: XmppPeer, id: string): PeerEvent[] =>
  peer.events.filter((event) => event.event === 'message' && event.id === id);
const isText = (text: string) => (report: Connected['reports'][number]) =>
  report.kind === 'message' && report.message.content.kind === 'text' && report.message.content.text === text;

describe('a connection that breaks', () => {
  let world: World;
  let ada: XmppPeer;
  let line: CuttableLine;
  let instance: Connected;

  beforeAll(async () => {
    world = await startWorld();
    [ada, line] = await Promise.all([world.peer(numbers.ada), startCuttableLine(world.prosody.port)]);
    instance = await world.connect({ port: line.port });
  });
  afterAll(async () => {
    await world.close();
    await line.close();
  });

  it('is resumed where it broke: nothing is lost and nothing comes twice', async () => {
    const to = instance.session.ownJid;
    // Answers to queries are stanzas too, and count.
    for (let index = 0; index < 5; index++) await instance.session.privacySettings?.();
    await ada.do('text', { to, body: 'before the break' });
    await instance.reported('the first', isText('before the break'));
    const logins = () => occurrences(world.prosody.log(), `Authenticated as ${to}`);
    const loginsBefore = logins();
    line.cut();
    await ada.do('text', { to, body: 'during the break' });
    await instance.reported('the second', isText('during the break'));
    await until('the session to be open again', () => instance.session.state() === 'open');
    expect(
      instance.reports
        .filter(({ kind }) => kind === 'connection')
        .map((report) => 'state' in report && report.state),
    ).toEqual(['connecting', 'open', 'connecting', 'open']);
    expect(line.received()).toContain('<resumed');
    await until('the login to be logged', () => logins() > loginsBefore);
    expect(logins()).toBe(loginsBefore + 1);
    await instance.session.privacySettings?.();
    expect(occurrences(line.received(), '<body>before the break</body>')).toBe(1);
    expect(instance.reports.filter(isText('during the break'))).toHaveLength(1);
  });

  it('in the middle of a send sends once', async () => {
    const id = newId();
    const chat = await instance.chat(numbers.ada);
    line.deafen();
    const sending = instance.session.sendText?.(
      { messageId: id, chat, text: 'Once' },
      AbortSignal.timeout(20_000),
    );
    await line.sent(id);
    await ada.seen('the message', (event) => event.id === id);
    line.cut();
    await sending;
    await ada.do('round_trip');
    expect(messagesWithId(ada, id)).toHaveLength(1);
  });

  it('gives a send up when its time is over', async () => {
    const chat = await instance.chat(numbers.ada);
    line.deafen();
    const late = new Error('too late');
    const stop = new AbortController();
    const sending = instance.session.sendText?.({ messageId: newId(), chat, text: 'Late' }, stop.signal);
    stop.abort(late);
    await expect(sending).rejects.toBe(late);
    line.cut();
    await until('the session to be open again', () => instance.session.state() === 'open');
  });
});

describe('on a server without stream management', () => {
  let world: World;
  let ada: XmppPeer;
  let line: CuttableLine;
  let instance: Connected;
  let note: string;

  beforeAll(async () => {
    world = await startWorld({ without: ['smacks'] });
    [ada, line, note] = await Promise.all([
      world.peer(numbers.ada),
      startCuttableLine(world.prosody.port),
      makeVoiceNote(world.folder, 1),
    ]);
    instance = await world.connect({ port: line.port });
  });
  afterAll(async () => {
    await world.close();
    await line.close();
  });

  it('messages are acknowledged all the same', async () => {
    const id = await instance.voice(numbers.ada, note);
    expect(instance.statuses(id)).toEqual(['SERVER_ACK']);
  });

  it('a message of which nobody knows whether it arrived is looked up in the archive, and sent once', async () => {
    const id = newId();
    const chat = await instance.chat(numbers.ada);
    line.deafen();
    const sending = instance.session.sendText?.(
      { messageId: id, chat, text: 'Once' },
      AbortSignal.timeout(20_000),
    );
    await ada.seen('the message', (event) => event.id === id);
    line.cut();
    await sending;
    await ada.do('round_trip');
    expect(messagesWithId(ada, id)).toHaveLength(1);
    await until(
      'the second login to be logged',
      () => occurrences(world.prosody.log(), `Authenticated as ${instance.session.ownJid}`) > 1,
    );
  });

  it('a message that certainly did not arrive is sent again', async () => {
    const id = newId();
    const chat = await instance.chat(numbers.ada);
    line.cut();
    const sending = instance.session.sendText?.(
      { messageId: id, chat, text: 'Again' },
      AbortSignal.timeout(20_000),
    );
    await sending;
    await ada.seen('the message', (event) => event.id === id);
    expect(messagesWithId(ada, id)).toHaveLength(1);
  });
});

describe('a gateway that starts again', () => {
  let world: World;
  let ada: XmppPeer;
  let note: string;

  beforeAll(async () => {
    world = await startWorld();
    [ada, note] = await Promise.all([world.peer(numbers.ada), makeVoiceNote(world.folder, 1)]);
  });
  afterAll(() => world.close());

  it('does not send a second time what the server had taken when it ended', async () => {
    const first = await world.connect();
    const id = await first.voice(numbers.ada, note);
    await first.close();
    const second = await world.connect({ instance: first.instance });
    // The core repeats a send under the same id when the process died before it had noted the outcome.
    await second.voice(numbers.ada, note, {}, id);
    const last = await second.voice(numbers.ada, note);
    await ada.seen('what came after', (event) => event.id === last);
    expect(messagesWithId(ada, id)).toHaveLength(1);
  });

  it('learns how far its messages have come meanwhile, and gets what it missed', async () => {
    const first = await world.connect();
    const to = first.session.ownJid;
    const id = await first.voice(numbers.ada, note);
    await ada.seen('the message', (event) => event.id === id);
    await first.close();
    await ada.do('receipt', { to, id });
    await ada.do('marker', { to, id });
    await ada.do('text', { to, body: 'while you were away' });
    const second = await world.connect({ instance: first.instance });
    await second.reported('the reading', (report) => report.kind === 'status' && report.status === 'READ');
    const report = await second.reported('the text', isText('while you were away'));
    expect(report).toMatchObject({ message: { isHistory: false, fromMe: false } });
    expect(second.reports.filter(isText('while you were away'))).toHaveLength(1);
  });

  it.each([true, false])(
    'with syncFullHistory %s takes up the history of a new account accordingly',
    async (wanted) => {
      const fresh = await world.connect({ settings: { syncFullHistory: wanted } });
      await ada.do('text', { to: fresh.session.ownJid, body: `new ${wanted}` });
      await fresh.reported('what is new', isText(`new ${wanted}`));
      const isOld = (report: Connected['reports'][number]) =>
        report.kind === 'message' && report.message.isHistory === true;
      if (wanted) {
        await fresh.reported('what is old', isOld);
      } else {
        expect(fresh.reports.filter(isOld)).toEqual([]);
      }
    },
  );
});

describe('a login', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  it('with a wrong password ends, with the reason, and is not tried again', async () => {
    const refused = await world.connect({ password: 'wrong', waitUntilOpen: false });
    const report = await refused.reported(
      'the end',
      (candidate) => candidate.kind === 'connection' && candidate.state === 'close',
    );
    expect(report).toMatchObject({ reason: 'the server refused the login (not-authorized)' });
    expect(refused.session.state()).toBe('close');
    await expect(refused.text(numbers.ada, 'x')).rejects.toMatchObject({ code: 'not_connected' });
  });

  it('to an address that the operator has not allowed ends before a connection is made', async () => {
    const line = await startCuttableLine(world.prosody.port);
    const refused = await world.connect({ port: line.port, isAllowed: false, waitUntilOpen: false });
    const report = await refused.reported(
      'the end',
      (candidate) => candidate.kind === 'connection' && candidate.state === 'close',
    );
    expect(report).toMatchObject({ reason: expect.stringContaining('OUTBOUND_ALLOW') });
    expect(line.connections()).toBe(0);
    await line.close();
  });

  it('on a server that offers no encryption ends before the password is used', async () => {
    const before = world.prosody.log().length;
    const refused = await world.connect({ onlyEncrypted: true, waitUntilOpen: false });
    const report = await refused.reported(
      'the end',
      (candidate) => candidate.kind === 'connection' && candidate.state === 'close',
    );
    expect(report).toMatchObject({ reason: 'the server offers no encryption' });
    expect(world.prosody.log().slice(before)).not.toContain('Authenticated');
  });

  it('goes to the address that was checked, not to whatever the name means to somebody else', async () => {
    const instance = await world.connect({ host: 'server.chat.example' });
    expect(instance.session.state()).toBe('open');
  });

  it('waits for a server that is not there yet', async () => {
    const early = await world.connect({ port: await freePort(), waitUntilOpen: false });
    expect(early.session.state()).toBe('connecting');
    await early.session.logout();
    expect(early.session.state()).toBe('close');
  });

  it('can be ended and begun again', async () => {
    const instance = await world.connect();
    await instance.session.logout();
    expect(instance.session.state()).toBe('close');
    await expect(instance.text(numbers.ada, 'x')).rejects.toMatchObject({ code: 'not_connected' });
    await instance.session.connect();
    await until('it is open again', () => instance.session.state() === 'open');
    expect(await instance.text(numbers.ada, 'x')).toMatch(/^[0-9A-F]{32}$/);
  });
});
