/** Finds people and groups by the addresses that callers write, and lists both. */

import { type Address, mayMean } from 'soundpost-chat/address';
import type { Chat, Contact, NetworkChat } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Account } from './account.ts';
import { attribute, type Element } from './element.ts';
import { isNothingThere, refusal } from './failure.ts';
import { bareOf, domainOf } from './jid.ts';

const PAGE_MESSAGES = 100;
/** Without `syncFullHistory`, the list of chats goes back this far. */
const RECENT_PAGES = 10;

/** Throws unknown_recipient for an invalid address; whether a person exists shows when sending. */
export async function resolveChat(account: Account, address: Address, field: string): Promise<Chat> {
  const { groups, addressBook, ownJid } = account;
  const domain = domainOf(ownJid);
  const isOwnPerson = mayMean(address, 'person', { person: domain, group: '' });
  const local = address.suffix === domain ? bareOf(address.text).split('@')[0] : address.digits;
  const person = isOwnPerson ? `${local}@${domain}` : bareOf(address.text);
  const isKnownPerson = addressBook.has(person) || address.suffix === domain;
  if (!isKnownPerson) {
    const group = await (address.suffix === undefined ? groups.findKept(address) : groups.find(address));
    if (group !== undefined) {
      return { ...group, isGroup: true };
    }
  }
  if ((isOwnPerson && !local) || (!isOwnPerson && (await groups.isGroupAddress(address)))) {
    throw new GatewayError('unknown_recipient', `${field}: no person or group has this address`);
  }
  return { jid: person, name: addressBook.knownName(person), isGroup: false };
}

export async function listContacts({ addressBook, groups }: Account): Promise<Contact[]> {
  const entries = addressBook.entries();
  const [names, blocked, rooms] = await Promise.all([
    addressBook.names(entries.map(({ jid }) => jid)),
    addressBook.blocked().catch((error: unknown) => {
      throw refusal('reading the block list', error);
    }),
    groups.all(),
  ]);
  const people = entries.map(({ jid }) => ({
    jid,
    name: names.get(jid) ?? jid,
    isGroup: false,
    isSaved: true,
    blocked: blocked.has(jid),
  }));
  // A blocked account need not be a contact.
  const strangers = [...blocked]
    .filter((jid) => jid.includes('@') && !addressBook.has(jid))
    .map((jid) => ({ jid, name: addressBook.knownName(jid), isGroup: false, isSaved: false, blocked: true }));
  return [
    ...people,
    ...strangers,
    ...rooms.map((room) => ({ ...room, isGroup: true, isSaved: true, blocked: false })),
  ];
}

/** XMPP has no list of chats, so it is built from the archive and the bookmarked rooms. */
export async function listChats({
  archive,
  addressBook,
  groups,
  settings,
  ownJid,
}: Account): Promise<NetworkChat[]> {
  const newest = new Map<string, number>();
  const note = (message: Element, atMs: number): void => {
    const from = bareOf(attribute(message, 'from') ?? ownJid);
    const peer = from === ownJid ? bareOf(attribute(message, 'to') ?? ownJid) : from;
    if (message.getChild('body') !== undefined && peer.includes('@')) {
      newest.set(peer, Math.max(newest.get(peer) ?? 0, atMs));
    }
  };
  try {
    let before = '';
    for (let pages = 0; settings.syncFullHistory || pages < RECENT_PAGES; pages++) {
      const page = await archive.page({ before, max: PAGE_MESSAGES });
      for (const { message, atMs } of page.messages) note(message, atMs);
      if (page.complete || page.firstId === undefined) break;
      before = page.firstId;
    }
  } catch (error) {
    if (!isNothingThere(error)) throw refusal('reading the archive', error);
  }
  const rooms = await groups.all();
  const isRoom = new Set(rooms.map(({ jid }) => jid));
  const people = [...newest].filter(([jid]) => !isRoom.has(jid));
  return [
    ...people.map(([jid, updatedAtMs]) => ({
      jid,
      name: addressBook.knownName(jid),
      isGroup: false,
      updatedAtMs,
    })),
    ...rooms.map((room) => ({ ...room, isGroup: true, updatedAtMs: null })),
  ];
}
