/** WhatsApp addresses: people by number (`s.whatsapp.net`) or internal id (`lid`), and groups. */
export const suffixes = { person: 's.whatsapp.net', group: 'g.us' } as const;
export const LID_SUFFIX = 'lid';

export const personJid = (digits: string): string => `${digits}@${suffixes.person}`;
export const isGroupJid = (jid: string): boolean => jid.endsWith(`@${suffixes.group}`);
export const isLid = (jid: string): boolean => jid.endsWith(`@${LID_SUFFIX}`);
export const isNumberJid = (jid: string): boolean => jid.endsWith(`@${suffixes.person}`);
export const isPersonJid = (jid: string): boolean => isNumberJid(jid) || isLid(jid);

/** Without the device (`number:device@…`), and with today's suffix. */
export function bareJid(jid: string): string {
  const [user = '', server = ''] = jid.split('@');
  return `${user.split(':')[0]}@${server === 'c.us' ? suffixes.person : server}`;
}

/** The part before `@`, without the device. */
export function userOf(jid: string): string {
  return bareJid(jid).split('@')[0] ?? '';
}
