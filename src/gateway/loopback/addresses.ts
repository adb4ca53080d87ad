/** How the network writes numbers. */
export const suffixes = { person: 'people.loopback', group: 'groups.loopback' } as const;

export const personJid = (digits: string): string => `${digits}@${suffixes.person}`;
export const groupJid = (digits: string): string => `${digits}@${suffixes.group}`;
export const isGroupJid = (jid: string): boolean => jid.endsWith(`@${suffixes.group}`);
/** The number part of a JID of this network. */
export const digitsOf = (jid: string): string => jid.slice(0, jid.indexOf('@'));
