// @module-tag prosody
// @module-tag slixmpp
/** A voice message on XMPP, as a client of another implementation receives it. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PeerEvent, XmppPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../gateway-fixture.ts';
import {
  type Connected,
  jidOf,
  makeVoiceNote,
  newId,
  numbers,
  startWorld,
  type World,
} from './xmpp-fixture.ts';

let world: World;
let ada: XmppPeer;
let instance: Connected;
let note: string;

beforeAll(async () => {
  world = await startWorld();
  [ada, instance, note] = await Promise.all([
    world.peer(numbers.ada),
    world.connect(),
    makeVoiceNote(world.folder, 3.2),
  ]);
});
afterAll(() => world.close());

const seenByAda = (id: string): Promise<PeerEvent> =>
  ada.seen('the message', (event) => event.event === 'message' && event.id === id);

describe('a voice message', () => {
  it('can be downloaded, byte for byte, and is Ogg Opus of the right length', async () => {
    const message = await seenByAda(await instance.voice(numbers.ada, note));
    const file = join(world.folder, 'downloaded.ogg');
    const downloaded = await ada.do('download', { url: message.oob, path: file });
    const bytes = await readFile(note);
    expect(downloaded).toEqual({
      sizeBytes: bytes.length,
      contentType: 'audio/ogg; codecs=opus',
      sha256: createHash('sha256').update(bytes).digest('hex'),
    });
    const entries = ['format=format_name,duration', 'stream=codec_name,channels,sample_rate'].join(':');
    const probed = await run('ffprobe', ['-v', 'error', '-show_entries', entries, '-of', 'json', file]);
    const { streams, format } = JSON.parse(probed.stdout);
    expect(streams).toEqual([{ codec_name: 'opus', sample_rate: '48000', channels: 1 }]);
    expect(format.format_name).toBe('ogg');
    expect(Number(format.duration)).toBeCloseTo(3.2, 1);
  });

  it('says what it is to clients that know shared files, and to those that know addresses only', async () => {
    const id = await instance.voice(numbers.ada, note);
    const message = await seenByAda(id);
    const bytes = await readFile(note);
    expect(message).toMatchObject({
      type: 'chat',
      originId: id,
      receiptAsked: true,
      markable: true,
      body: message.oob,
      file: {
        disposition: 'inline',
        mediaType: 'audio/ogg',
        name: 'voice.ogg',
        size: String(bytes.length),
        length: '2910',
        algo: 'sha-256',
        hash: createHash('sha256').update(bytes).digest('base64'),
        url: message.oob,
      },
    });
  });

  it('answers a message of the other side', async () => {
    const asked = await ada.do('text', { to: instance.session.ownJid, body: 'How does it sound?' });
    await instance.reported('the question', ({ kind }) => kind === 'message');
    const quoted = { id: asked, text: 'How does\nit sound? 🎻' };
    const message = await seenByAda(await instance.voice(numbers.ada, note, { quoted }));
    expect(message.reply).toEqual({ id: asked, to: jidOf(numbers.ada) });
    // Clients that know only the out-of-band address want it to be the whole text.
    expect(message.body).toBe(message.oob);
  });

  it('answers a message of which only the id is known, without adding to the text', async () => {
    const message = await seenByAda(
      await instance.voice(numbers.ada, note, { quoted: { id: 'long-gone', text: undefined } }),
    );
    expect(message).toMatchObject({ reply: { id: 'long-gone' }, body: message.oob });
  });

  it('mentions people by their address, without adding to the text', async () => {
    const quoted = { id: 'x', text: '🎻🎻' };
    const mentioned = [numbers.hedy, jidOf(numbers.ada)];
    const message = await seenByAda(await instance.voice(numbers.ada, note, { quoted, mentioned }));
    expect(message.references.map(({ type, uri }: PeerEvent) => [type, uri])).toEqual([
      ['mention', `xmpp:${jidOf(numbers.hedy)}`],
      ['mention', `xmpp:${jidOf(numbers.ada)}`],
    ]);
    expect(message).toMatchObject({ body: message.oob, reply: { id: 'x' } });
  });
});

describe('its status', () => {
  it('walks to READ with the receipt and the marker of the other side', async () => {
    const id = await instance.voice(numbers.ada, note);
    await seenByAda(id);
    expect(instance.statuses(id)).toEqual(['SERVER_ACK']);
    await ada.do('receipt', { to: instance.session.ownJid, id });
    await instance.reported(
      'the delivery',
      (report) => report.kind === 'status' && report.messageId === id && report.status === 'DELIVERY_ACK',
    );
    await ada.do('marker', { to: instance.session.ownJid, id });
    await instance.reported(
      'the reading',
      (report) => report.kind === 'status' && report.messageId === id && report.status === 'READ',
    );
    expect(instance.statuses(id)).toEqual(['SERVER_ACK', 'DELIVERY_ACK', 'READ']);
  });

  it('is READ for what came before the message that was looked at, too', async () => {
    const first = await instance.voice(numbers.ada, note);
    const second = await instance.voice(numbers.ada, note);
    await seenByAda(second);
    await ada.do('marker', { to: instance.session.ownJid, id: second });
    for (const read of [first, second]) {
      await instance.reported(
        `${read} to be read`,
        (report) => report.kind === 'status' && report.messageId === read && report.status === 'READ',
      );
    }
  });

  it('is not moved by somebody to whom the message was not sent', async () => {
    const hedy = await world.peer(numbers.hedy);
    const id = await instance.voice(numbers.ada, note);
    await hedy.do('marker', { to: instance.session.ownJid, id });
    await hedy.do('receipt', { to: instance.session.ownJid, id });
    await hedy.do('text', { to: instance.session.ownJid, body: 'after the forgery' });
    await instance.reported(
      'what came after',
      (report) =>
        report.kind === 'message' &&
        report.message.content.kind === 'text' &&
        report.message.content.text === 'after the forgery',
    );
    expect(instance.statuses(id)).toEqual(['SERVER_ACK']);
  });
});

describe('to nobody', () => {
  it('is refused as sent to an unknown recipient, also when it is tried again', async () => {
    const messageId = newId();
    for (const _attempt of ['first', 'second']) {
      const sent = instance.voice(numbers.nobody, note, {}, messageId);
      await expect(sent).rejects.toMatchObject({ code: 'unknown_recipient' });
    }
  });

  it('on a server that cannot be reached is refused too', async () => {
    // Prosody answers at once here, since it may not speak to other servers.
    const sent = instance.voice('somebody@elsewhere.example', note);
    await expect(sent).rejects.toMatchObject({ code: 'network_refused' });
  });
});
