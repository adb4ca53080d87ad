/** A voice message that is larger than WhatsApp allows. In `all`: the fake of its servers takes seconds for so many bytes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as baileys from 'baileys';
import { until } from 'soundpost-testing/until';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from '../gateway-fixture.ts';
import { personJid } from './fake-whatsapp.ts';
import { ada, OWN_NUMBER, startSetting, useSettings } from './whatsapp-fixture.ts';

useSettings();

it('is shown as text', async () => {
  const [setting, folder] = await Promise.all([startSetting(), makeFolder()]);
  onTestFinished(async () => {
    await setting.close();
    await folder.remove();
  });
  await setting.openSession();
  const file = join(folder.path, 'sound');
  await writeFile(file, Buffer.alloc(16 * 1024 * 1024 + 1));
  const { message } = await baileys.generateWAMessage(
    personJid(OWN_NUMBER),
    { audio: { url: file }, ptt: true, seconds: 1 },
    { userJid: ada.jid, upload: (path) => setting.network.upload(path) },
  );
  const key = { remoteJid: ada.jid, fromMe: false, id: 'LARGE' };
  setting.network.socket.emit({
    'messages.upsert': { type: 'notify', messages: [{ key, message: message ?? null }] },
  });
  const arrived = await until('it is reported', () => setting.reported.messages[0]);
  expect(arrived.content).toEqual({ kind: 'text', text: '[voice message]' });
});
