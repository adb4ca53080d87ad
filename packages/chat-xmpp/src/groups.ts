/** The instance's groups: joined or bookmarked rooms. */

import { type Address, mayMean } from 'soundpost-chat/address';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { addBookmark, readBookmarks } from './bookmarks.ts';
import type { Discovery } from './discovery.ts';
import { attribute } from './element.ts';
import { isNothingThere, refusal } from './failure.ts';
import { bareOf, domainOf, localOf } from './jid.ts';
import type { Memory } from './memory.ts';
import type { Room } from './room.ts';
import { parseInvitation, type Rooms } from './rooms.ts';
import type { Stream } from './stream.ts';

interface GroupsOptions {
  readonly stream: Stream;
  readonly rooms: Rooms;
  readonly memory: Memory;
  readonly discovery: Discovery;
  /** The instance's name in rooms, unless a bookmark has another one. */
  readonly nick: string;
}

interface Group {
  readonly jid: string;
  readonly name: string;
}

export class Groups {
  readonly #options: GroupsOptions;

  constructor(options: GroupsOptions) {
    this.#options = options;
  }

  async all(): Promise<Group[]> {
    const { stream, rooms } = this.#options;
    const bookmarks = await readBookmarks(stream);
    const kept = new Set(bookmarks.map(({ room }) => room));
    const others = rooms.all().filter(({ jid }) => !kept.has(jid));
    return [
      ...bookmarks.map(({ room, name }) => ({ jid: room, name })),
      ...others.map(({ jid }) => ({ jid, name: localOf(jid) })),
    ];
  }

  /** @returns the room; undefined if the address names no room of the instance */
  async find(address: Address): Promise<Group | undefined> {
    const jid = await this.#roomOf(address);
    if (jid === undefined) {
      return undefined;
    }
    const known = (await this.all()).find((group) => group.jid === jid);
    return known ?? (await this.#lookUp(jid));
  }

  /** As `find`, without querying the room: a bare number more likely means a person. */
  async findKept(address: Address): Promise<Group | undefined> {
    const jid = await this.#roomOf(address);
    return jid === undefined ? undefined : (await this.all()).find((group) => group.jid === jid);
  }

  /** Whether the address can only be a room's. */
  async isGroupAddress(address: Address): Promise<boolean> {
    return address.suffix !== undefined && (await this.#roomOf(address)) !== undefined;
  }

  /** Throws group_not_found. */
  async require(address: Address): Promise<Group> {
    const group = await this.find(address);
    if (group === undefined) {
      throw new GatewayError('group_not_found', 'groupJid: the instance is in no group with this JID');
    }
    return group;
  }

  /** Throws group_not_found, network_refused. */
  async enter(jid: string): Promise<Room> {
    const { stream, rooms, memory, nick } = this.#options;
    const joined = rooms.joined(jid);
    if (joined !== undefined) {
      return joined;
    }
    const bookmark = (await readBookmarks(stream)).find(({ room }) => room === jid);
    const entry = { nick: bookmark?.nick ?? nick, sinceMs: await memory.roomSeen(jid) };
    try {
      return await rooms.join(jid, { ...entry, password: bookmark?.password });
    } catch (error) {
      // An owner needs the password too, but can look it up.
      const invitation = await rooms.invitation(jid, false).catch(() => undefined);
      if (invitation === undefined) {
        throw error;
      }
      return rooms.join(jid, { ...entry, password: invitation.inviteCode });
    }
  }

  async enterKept(): Promise<void> {
    const bookmarks = await readBookmarks(this.#options.stream);
    const wanted = bookmarks.filter(({ autojoin }) => autojoin);
    // A room that cannot be entered now is tried again when it is used.
    await Promise.allSettled(wanted.map(({ room }) => this.enter(room)));
  }

  async invitation(address: Address, renew: boolean): ReturnType<Rooms['invitation']> {
    const { jid } = await this.require(address);
    const invitation = await this.#options.rooms.invitation(jid, renew);
    await this.#keepPassword(jid, invitation.inviteCode);
    return invitation;
  }

  /** @param text an invitation's code or whole address. Throws group_not_found. */
  async accept(text: string): Promise<string> {
    const { stream, rooms, memory, nick } = this.#options;
    const parsed = parseInvitation(text);
    const room = parsed?.room ?? (await memory.invitedTo(text));
    if (room === undefined) {
      throw new GatewayError(
        'group_not_found',
        'inviteCode: no invitation with this code has come; on this network a code alone does not name its group, so give the whole inviteUrl',
      );
    }
    const password = (parsed === undefined ? text : parsed.code) || undefined;
    await this.#exists(room);
    await rooms.join(room, { nick, password });
    const bookmark = { room, name: localOf(room), autojoin: true, nick, password };
    await addBookmark(stream, bookmark);
    return room;
  }

  /** Entering a room that does not exist would create it (XEP-0045 §10.1). */
  async #exists(room: string): Promise<void> {
    await this.#options.discovery.info(room).catch((error: unknown) => {
      throw isNothingThere(error)
        ? new GatewayError('group_not_found', 'no such group', { cause: error })
        : refusal('the group', error);
    });
  }

  async #roomOf(address: Address): Promise<string | undefined> {
    const { discovery } = this.#options;
    const service = await discovery.muc().catch(() => undefined);
    if (service !== undefined && mayMean(address, 'group', { person: '', group: service })) {
      const local = address.suffix === service ? localOf(address.text) : address.digits;
      return local === '' ? undefined : `${local}@${service}`;
    }
    if (address.suffix === undefined) {
      return undefined;
    }
    const jid = bareOf(address.text);
    return (await discovery.hasRooms(domainOf(jid))) ? jid : undefined;
  }

  /** A room without a bookmark counts if the instance can enter it. */
  async #lookUp(jid: string): Promise<Group | undefined> {
    try {
      const info = await this.#options.discovery.info(jid);
      const name = attribute(info.getChild('identity'), 'name');
      await this.enter(jid);
      return { jid, name: name ?? localOf(jid) };
    } catch (error) {
      if (isNothingThere(error) || (error instanceof GatewayError && error.code === 'group_not_found')) {
        return undefined;
      }
      throw refusal('groupJid', error);
    }
  }

  /** Other devices also enter the room with the bookmark's password. */
  async #keepPassword(jid: string, password: string): Promise<void> {
    const { stream } = this.#options;
    const bookmark = (await readBookmarks(stream)).find(({ room }) => room === jid);
    if (bookmark !== undefined && bookmark.password !== password) {
      // If this fails, an owner still finds it in the room's configuration.
      await addBookmark(stream, { ...bookmark, password }).catch(() => undefined);
    }
  }
}
