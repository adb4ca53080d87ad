/**
 * Telegram's ids in the gateway's forms. A chat is `<id>@telegram`; the id keeps its sign: a
 * person's is positive, a group's or channel's negative (core.telegram.org/bots/api#chat). A
 * message is `<chat id>_<message id>`, since its own number counts within its chat.
 */
import type { Address } from 'soundpost-chat/address';
import { GatewayError } from 'soundpost-contract/gateway-errors';

const SUFFIX = 'telegram';
/** Of the network that the interface comes from; only the number counts. */
const FOREIGN_SUFFIXES = new Set(['s.whatsapp.net', 'c.us', 'g.us']);
/** core.telegram.org/method/account.checkUsername */
const PUBLIC_NAME = /^@[A-Za-z]\w{3,31}$/;

export const jidOf = (chatId: number): string => `${chatId}@${SUFFIX}`;
export const isGroupId = (chatId: number): boolean => chatId < 0;

/** The id in one of our own JIDs. */
export const idOf = (jid: string): number => Number(jid.slice(0, jid.lastIndexOf('@')));

export const networkIdOf = (chatId: number, messageId: number): string => `${chatId}_${messageId}`;

/** Undefined for an id of the gateway's own. */
export function parseNetworkId(text: string): { chatId: number; messageId: number } | undefined {
  const [, chatId, messageId] = /^(-?\d{1,15})_(\d{1,10})$/.exec(text) ?? [];
  return chatId === undefined ? undefined : { chatId: Number(chatId), messageId: Number(messageId) };
}

/** A chat as a caller named it: by its id, or a public group or channel by its `@name`. */
type Target = { readonly id: number } | { readonly name: string };

/** @param field named in the error. Throws unknown_recipient. */
export function targetOf({ text, suffix }: Address, field: string): Target {
  if (PUBLIC_NAME.test(text)) return { name: text };
  const known = suffix === undefined || suffix === SUFFIX || FOREIGN_SUFFIXES.has(suffix);
  const local = suffix === undefined ? text : text.slice(0, text.lastIndexOf('@')).replace(/:\d+$/, '');
  // Hyphens inside are punctuation, as in a phone number; a leading one is the sign of a group.
  const [, sign, digits = ''] = /^(-?)([\d\s()+.-]+)$/.exec(local.trim()) ?? [];
  const id = Number(`${sign}${digits.replace(/\D/g, '')}`);
  if (!known || !Number.isSafeInteger(id) || id === 0) {
    throw new GatewayError(
      'unknown_recipient',
      `${field}: must be the id of a chat on Telegram, or the @name of a public group or channel`,
    );
  }
  return { id };
}
