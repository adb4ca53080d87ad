/** Addresses of the Cloud API: numbers, ids of people without a visible number, and groups. */
import { type Address, mayMean } from 'soundpost-chat/address';

const suffixes = { person: 's.whatsapp.net', group: 'g.us' } as const;
/**
 * People whose number is hidden have a business-scoped user id, such as `US.13491208655302741918`.
 */
const HIDDEN_SUFFIX = 'lid';

export const personJid = (number: string): string => `${number.replace(/\D/g, '')}@${suffixes.person}`;
export const hiddenJid = (userId: string): string => `${userId}@${HIDDEN_SUFFIX}`;
export const groupJid = (groupId: string): string => `${groupId}@${suffixes.group}`;
export const localOf = (jid: string): string => jid.slice(0, jid.lastIndexOf('@'));

/** E.164 allows 15 digits. */
const NUMBER = /^\d{5,15}$/;

/** What the address means; undefined if nothing on this network has such a form. */
export function meaning(address: Address): { jid: string; isGroup: boolean } | undefined {
  const { suffix, digits, text } = address;
  if (suffix === suffixes.group) return { jid: groupJid(localOf(text)), isGroup: true };
  if (suffix === HIDDEN_SUFFIX) return { jid: hiddenJid(localOf(text)), isGroup: false };
  return mayMean(address, 'person', suffixes) && NUMBER.test(digits)
    ? { jid: personJid(digits), isGroup: false }
    : undefined;
}

/**
 * How a message names its recipient (…/cloud-api/reference/messages; …/business-scoped-user-ids).
 */
export function recipientFields({ jid, isGroup }: { jid: string; isGroup: boolean }) {
  const local = localOf(jid);
  return {
    recipient_type: isGroup ? ('group' as const) : ('individual' as const),
    ...(jid.endsWith(`@${HIDDEN_SUFFIX}`) ? { recipient: local } : { to: local }),
  };
}
