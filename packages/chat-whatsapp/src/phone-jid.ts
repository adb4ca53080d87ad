import type { WhatsAppSocket } from './library.ts';

/** WhatsApp addresses: people by number (`s.whatsapp.net`) or internal id (`lid`), and groups. */
export const suffixes = { person: 's.whatsapp.net', group: 'g.us' } as const;
export const LID_SUFFIX = 'lid';

export const personJid = (digits: string): string => `${digits}@${suffixes.person}`;
export const isGroupJid = (jid: string): boolean => jid.endsWith(`@${suffixes.group}`);
const isLid = (jid: string): boolean => jid.endsWith(`@${LID_SUFFIX}`);
export const isPersonJid = (jid: string): boolean => jid.endsWith(`@${suffixes.person}`) || isLid(jid);

/** Without the device (`number:device@…`), and with today's suffix. */
export function bareJid(jid: string): string {
  const [user = '', server = ''] = jid.split('@');
  return `${user.split(':')[0]}@${server === 'c.us' ? suffixes.person : server}`;
}

/** The part before `@`, without the device. */
export function userOf(jid: string): string {
  return bareJid(jid).split('@')[0] ?? '';
}

/**
 * The address by phone number if it can be found: internal ids (`…@lid`) mean nothing to callers.
 * @param known the same person's address by number, if the event carried it
 */
export async function phoneJid(
  { socket }: { readonly socket: WhatsAppSocket },
  jid: string | null | undefined,
  known?: string | null,
): Promise<string | undefined> {
  if (!jid) {
    return undefined;
  }
  if (!isLid(jid)) {
    return bareJid(jid);
  }
  const found = known && !isLid(known) ? known : await socket.signalRepository.lidMapping.getPNForLID(jid);
  return bareJid(found ?? jid);
}
