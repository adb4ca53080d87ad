/**
 * Reports incoming messages, edits, receipts, bounces, typing, calls and group changes. A stanza
 * arrives live, as a copy from another device of the account (XEP-0280), or from the archive, and
 * may arrive more than once.
 */
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Presence, TransportReports } from 'soundpost-chat/transport';
import type { AddressBook } from './address-book.ts';
import { Calls } from './calls.ts';
import { attribute, childrenIn, type Element } from './element.ts';
import { bareOf, resourceOf } from './jid.ts';
import type { Memory } from './memory.ts';
import { contentOf, contextOf } from './message-content.ts';
import { ns } from './namespaces.ts';
import { Answers, Receipts } from './receipts.ts';
import { hasStatus, type Room } from './room.ts';
import type { Rooms } from './rooms.ts';

type InboundOptions = ConstructorParameters<typeof Answers>[0] & {
  readonly instanceId: string;
  readonly ownJid: string;
  readonly rooms: Rooms;
  readonly addressBook: AddressBook;
  readonly memory: Memory;
  readonly log: MessageLog;
  readonly reports: TransportReports;
};

type Origin =
  | { readonly kind: 'live' }
  /** @param history from the first full read, rather than missed while offline */
  | { readonly kind: 'archive'; readonly atMs: number; readonly history: boolean };

const LIVE: Origin = { kind: 'live' };
const presenceOfState: Readonly<Record<string, Presence>> = {
  composing: 'composing',
  paused: 'paused',
  active: 'paused',
  inactive: 'paused',
  gone: 'unavailable',
};

export class Inbound {
  readonly #options: InboundOptions;
  readonly #receipts: Receipts;
  readonly #answers: Answers;
  readonly calls: Calls;

  constructor(options: InboundOptions) {
    const { instanceId, log, reports } = options;
    this.#options = options;
    this.#receipts = new Receipts(instanceId, log, reports);
    this.#answers = new Answers(options);
    this.calls = new Calls(instanceId, reports);
  }

  async message(received: Element, origin: Origin = LIVE): Promise<void> {
    const stanza = origin.kind === 'live' ? this.#unwrapped(received) : received;
    if (stanza === undefined) {
      return;
    }
    const from = attribute(stanza, 'from') ?? this.#options.ownJid;
    if (attribute(stanza, 'type') === 'groupchat') {
      await this.#fromRoom(stanza, from, origin);
      return;
    }
    const fromMe = bareOf(from) === this.#options.ownJid;
    const chatJid = fromMe ? bareOf(attribute(stanza, 'to') ?? from) : bareOf(from);
    if (attribute(stanza, 'type') === 'error') {
      await this.#receipts.noticeBounce(stanza, chatJid);
      return;
    }
    const room = this.#options.rooms.joined(chatJid);
    if (room === undefined) {
      await this.#direct(stanza, { from, chatJid, fromMe, origin });
    } else if (origin.kind === 'live') {
      await this.#changes(room, stanza);
    }
  }

  async presence(stanza: Element): Promise<void> {
    const { rooms, reports, instanceId, ownJid } = this.#options;
    const from = bareOf(attribute(stanza, 'from') ?? ownJid);
    const wasIn = rooms.joined(from) !== undefined;
    const room = rooms.presence(stanza);
    if (room !== undefined) {
      // The occupants on entering are no change; nor is a new room's first presence (status 201).
      if (wasIn && !hasStatus(stanza, '201')) {
        await this.#changes(room, stanza);
      } else {
        room.observe(stanza);
      }
      return;
    }
    const type = attribute(stanza, 'type');
    if (from !== ownJid && (type === undefined || type === 'unavailable')) {
      await reports.presenceChanged(instanceId, from, type ?? 'available', from);
    }
  }

  /** The message inside a copy from the own server; undefined for a forged copy. */
  #unwrapped(stanza: Element): Element | undefined {
    const copy = childrenIn(stanza, ns.carbons).find((child) => child.is('received') || child.is('sent'));
    if (copy === undefined) {
      return stanza;
    }
    const from = bareOf(attribute(stanza, 'from') ?? this.#options.ownJid);
    return from === this.#options.ownJid
      ? copy.getChild('forwarded', ns.forward)?.getChild('message')
      : undefined;
  }

  async #direct(stanza: Element, about: About): Promise<void> {
    const { instanceId, reports } = this.#options;
    const { chatJid, fromMe, from } = about;
    if (!fromMe) {
      await this.#receipts.notice(stanza, chatJid);
    }
    if (about.origin.kind === 'live') {
      // Calls in the archive are over.
      await this.calls.notice(stanza, from, fromMe);
    }
    if (about.origin.kind === 'live' && !fromMe) {
      const state = childrenIn(stanza, ns.chatStates)[0]?.getName() ?? '';
      const presence = presenceOfState[state];
      if (presence !== undefined) {
        await reports.presenceChanged(instanceId, chatJid, presence, chatJid);
      }
    }
    await this.#rememberInvitation(stanza);
    const authorJid = bareOf(from);
    const messageId = idOf(stanza);
    if (messageId !== undefined && contentOf(stanza) !== undefined) {
      await this.#arrived(stanza, messageId, { ...about, authorJid, isGroup: false });
      if (!fromMe && about.origin.kind === 'live') {
        await this.#answers.toPerson(stanza, messageId, from);
      }
    }
  }

  async #fromRoom(stanza: Element, from: string, origin: Origin): Promise<void> {
    const { rooms, memory, instanceId, reports } = this.#options;
    const room = rooms.joined(bareOf(from));
    const messageId = idOf(stanza);
    const nick = resourceOf(from);
    // Ignores messages of the room itself (without a nickname) and of rooms not entered.
    if (room === undefined || messageId === undefined || nick === '') {
      return;
    }
    const roomId = stanza.getChildren('stanza-id', ns.stanzaId).find(({ attrs }) => attrs.by === room.jid)
      ?.attrs.id;
    if (typeof roomId === 'string') {
      await memory.setRoomId(messageId, roomId);
    }
    await memory.setRoomSeen(room.jid, timeOf(stanza, origin));
    const fromMe = nick === room.nick;
    if (fromMe) {
      // The room echoes a message that it has accepted.
      await reports.statusChanged(instanceId, messageId, 'SERVER_ACK');
    }
    const authorJid = fromMe ? this.#options.ownJid : (room.occupant(nick)?.jid ?? `${room.jid}/${nick}`);
    if (contentOf(stanza) !== undefined) {
      const about = { from, chatJid: room.jid, fromMe, origin, authorJid, isGroup: true, authorName: nick };
      await this.#arrived(stanza, messageId, about);
      if (!fromMe && origin.kind === 'live' && typeof roomId === 'string') {
        await this.#answers.toRoom(stanza, roomId, room.jid);
      }
    }
  }

  async #arrived(stanza: Element, messageId: string, about: Author): Promise<void> {
    const { instanceId, reports, log, addressBook } = this.#options;
    const { chatJid, authorJid, isGroup, fromMe, origin } = about;
    const content = contentOf(stanza);
    if (content === undefined) {
      return;
    }
    const replaced = attribute(stanza.getChild('replace', ns.correction), 'id');
    if (replaced !== undefined && content.kind === 'text') {
      await reports.messageEdited(instanceId, { messageId: replaced, authorJid, text: content.text });
      return;
    }
    // The gateway's own messages are in its log already.
    if (fromMe && (await log.find(instanceId, messageId)) !== undefined) {
      return;
    }
    await reports.messageArrived(instanceId, {
      messageId,
      chatJid,
      isGroup,
      authorJid,
      authorName: about.authorName ?? addressBook.knownName(authorJid),
      fromMe,
      isHistory: origin.kind === 'archive' && origin.history,
      timestampSeconds: Math.floor(timeOf(stanza, origin) / 1000),
      content,
      context: contextOf(stanza),
    });
  }

  /** XEP-0249: the invitation's password opens the room, so it serves as the invite code. */
  async #rememberInvitation(stanza: Element): Promise<void> {
    const invitation = stanza.getChild('x', ns.conference);
    const room = attribute(invitation, 'jid');
    const code = attribute(invitation, 'password');
    if (room !== undefined && code !== undefined) {
      await this.#options.memory.setInvitedTo(code, bareOf(room));
    }
  }

  async #changes(room: Room, stanza: Element): Promise<void> {
    const { reports, instanceId } = this.#options;
    for (const change of room.observe(stanza)) {
      const action = actionOf(change, stanza.name === 'presence');
      if (action !== undefined) {
        await reports.participantsChanged(instanceId, {
          groupJid: room.jid,
          action,
          participants: [change.jid],
        });
      }
    }
  }
}

interface About {
  readonly from: string;
  readonly chatJid: string;
  readonly fromMe: boolean;
  readonly origin: Origin;
}

interface Author extends About {
  readonly authorJid: string;
  readonly authorName?: string;
  readonly isGroup: boolean;
}

/** Receipts, edits and replies between two people use it (XEP-0461 §3.1). */
function idOf(stanza: Element): string | undefined {
  return attribute(stanza, 'id') ?? attribute(stanza.getChild('origin-id', ns.stanzaId), 'id');
}

function timeOf(stanza: Element, origin: Origin): number {
  if (origin.kind === 'archive') {
    return origin.atMs;
  }
  const delayedMs = Date.parse(attribute(stanza.getChild('delay', ns.delay), 'stamp') ?? '');
  return Number.isNaN(delayedMs) ? Date.now() : Math.min(delayedMs, Date.now());
}

const rank = { outcast: 0, none: 0, member: 1, admin: 2, owner: 3 } as const;

/** @param seen whether the person is in the room: entering a room makes nobody a participant */
function actionOf(
  { before, after }: ReturnType<Room['observe']>[number],
  seen: boolean,
): 'add' | 'remove' | 'promote' | 'demote' | undefined {
  if (before === undefined) {
    if (seen || rank[after] === 0) {
      return seen ? undefined : 'remove';
    }
    return after === 'member' ? 'add' : 'promote';
  }
  if (rank[after] === rank[before]) {
    return undefined;
  }
  if (rank[after] === 0) {
    return 'remove';
  }
  if (rank[before] === 0) {
    return 'add';
  }
  return rank[after] > rank[before] ? 'promote' : 'demote';
}
