/** A voice message near Telegram's limit, and one above it. In `all`: 45 MB are encoded, stored and sent. */
import { openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { expect, it, onTestFinished } from 'vitest';
import { ada, createBot, startTelegram } from './telegram-fixture.ts';

it('of 45 MB goes out in one piece, and one that the server finds too large is 413', async () => {
  const net = await startTelegram({ sendTimeoutMs: 300_000 });
  onTestFinished(() => net.close());
  await createBot(net);
  // As loud noise at the highest bitrate of one channel: 32 kB/s.
  const sound = await cachedMedia('large-note.ogg', [
    ...['-f', 'lavfi', '-i', 'anoisesrc=d=1430:r=48000:a=0.5', '-ac', '1'],
    ...['-c:a', 'libopus', '-b:a', '256k', '-vbr', 'off', '-compression_level', '0', '-frame_duration', '60'],
  ]);
  const { size } = await stat(sound);
  expect(size).toBeGreaterThan(45_000_000);
  const send = async () => {
    const form = new FormData();
    form.append('number', String(ada.id));
    // Sent as it is, although phones' own notes look otherwise.
    form.append('encoding', 'false');
    form.append('file', await openAsBlob(sound), 'large.ogg');
    return net.gateway.call('POST', '/message/sendMessengerAudio/bot', form);
  };
  const sent = await send();
  expect([sent.status, sent.body.message?.audioMessage.fileLength]).toEqual([200, String(size)]);
  const [message] = net.api.messages;
  expect(message?.request).toMatchObject({ duration: 1430 });
  expect(message && 'voice' in message.request && message.request.voice.bytes.length).toBe(size);

  net.api.mishaps.push({
    method: 'sendVoice',
    refuse: { code: 413, description: 'Request Entity Too Large' },
  });
  const refused = await send();
  expect([refused.status, refused.body.code]).toEqual([413, 'payload_too_large']);
  expect(net.api.faults).toEqual([]);
});
