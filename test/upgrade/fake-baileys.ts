/**
 * WhatsApp for a gateway in a process of its own: pairs at once, stores keys of every kind with the first session, and tells with each
 * later one what it finds. What happens stands line by line in the file that FAKE_WHATSAPP_LOG names.
 */
import { appendFileSync } from 'node:fs';
import type { SignalDataTypeMap, UserFacingSocketConfig } from 'baileys';
import { type FakeSocket, FakeWhatsApp, personJid } from '../gateway/whatsapp/fake-whatsapp.ts';
import { signalKeys } from './whatsapp-keys.ts';

const OWN_NUMBER = '4915112345678';
const ADA = '4915100000001';

const network = new FakeWhatsApp();
network.phone = OWN_NUMBER;
network.delivers = true;
network.addPerson(ADA, 'Ada');
network.addGroup('120363000000000001', 'The Sound Society', {
  [personJid(OWN_NUMBER)]: 'superadmin',
  [personJid(ADA)]: null,
});

const { library } = network;
export const { BufferJSON, downloadContentFromMessage, extractMessageContent, initAuthCreds, proto } =
  library;

function tell(event: object): void {
  appendFileSync(process.env.FAKE_WHATSAPP_LOG ?? '', `${JSON.stringify(event, BufferJSON.replacer)}\n`);
}

export function makeWASocket(config: UserFacingSocketConfig): FakeSocket {
  library.makeWASocket(config);
  const { socket } = network;
  const send = socket.sendMessage.bind(socket);
  socket.sendMessage = async (...args) => {
    const message = await send(...args);
    tell({ event: 'sent', jid: args[0], message });
    return message;
  };
  if (config.auth.creds.account !== undefined) void greet(socket);
  return socket;
}

/** A paired device: what its first session learns, every later one has. */
async function greet(socket: FakeSocket): Promise<void> {
  const { keys, creds } = socket.config.auth;
  const found: Record<string, unknown> = {};
  for (const [type, entries] of Object.entries(signalKeys)) {
    found[type] = await keys.get(type as keyof SignalDataTypeMap, Object.keys(entries));
  }
  tell({ event: 'connected', creds, keys: found });
  if (Object.keys(found.session ?? {}).length > 0) return;
  await keys.set(signalKeys);
  socket.emit({
    'contacts.upsert': [{ id: personJid(ADA), name: 'Ada Lovelace', notify: 'Ada' }],
    'chats.upsert': [{ id: personJid(ADA), conversationTimestamp: 1_700_000_000 }],
  });
}
