/** Whom a voice message mentions and what it answers, in the words of XMPP. */

import { parseAddress } from 'soundpost-chat/address';
import type { Chat, MessageContext } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Account } from './account.ts';
import { resolveChat } from './directory.ts';
import type { Quotation } from './voice-stanza.ts';

export async function quotationOf(
  { memory, log, instanceId, ownJid }: Account,
  chat: Chat,
  { quoted }: MessageContext,
): Promise<Quotation | undefined> {
  if (quoted === undefined) {
    return undefined;
  }
  const logged = await log.find(instanceId, quoted.id);
  const authorJid = logged?.key.fromMe ? ownJid : logged?.authorJid;
  const id = (chat.isGroup && (await memory.roomId(quoted.id))) || quoted.id;
  return { id, authorJid };
}

/** JIDs of those who are mentioned. */
export async function mentionsOf(
  account: Account,
  chat: Chat,
  { mentioned, mentionsEveryOne }: MessageContext,
): Promise<string[]> {
  const { rooms, ownJid } = account;
  const everybody =
    mentionsEveryOne && chat.isGroup
      ? (await rooms.participants(chat.jid)).filter(({ jid }) => jid !== ownJid)
      : [];
  const named = await Promise.all(
    mentioned.map(async (text, index) => {
      const field = `mentioned[${index}]`;
      const person = await resolveChat(account, parseAddress(text, field), field);
      if (person.isGroup) {
        throw new GatewayError('bad_request', `${field}: must be a person`);
      }
      return person;
    }),
  );
  return [...new Set([...everybody, ...named].map(({ jid }) => jid))];
}
