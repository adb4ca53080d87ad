/** The operations of an instance, each mapped to a method of Baileys. */

import type { Address } from 'soundpost-chat/address';
import type {
  Chat,
  Contact,
  IncomingCall,
  MessageEdit,
  NetworkChat,
  OutgoingInvite,
  OutgoingText,
  OutgoingVoice,
  Pairing,
  Participant,
  Presence,
  Session,
} from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { ConnectionState, InstanceSettings } from 'soundpost-contract/gateway-instances';
import { PrivacySettings } from 'soundpost-contract/gateway-operations';
import type { AddressBook } from './address-book.ts';
import type { Connection } from './connection.ts';
import { type Groups, groupJidOf } from './groups.ts';
import type { Identities } from './identities.ts';
import type { Incoming } from './incoming.ts';
import { asked, groupMeanings } from './network-request.ts';
import type { Outgoing } from './outgoing.ts';
import type { Recipients } from './recipients.ts';

interface SessionParts {
  readonly connection: Connection;
  readonly book: AddressBook;
  readonly groups: Groups;
  readonly identities: Identities;
  readonly recipients: Recipients;
  readonly outgoing: Outgoing;
  readonly incoming: Incoming;
  /** Deletes the account's data after logout. */
  readonly forget: () => Promise<void>;
  readonly settingsChanged: (settings: InstanceSettings) => void;
}

/** Defaults of a new account, for categories that WhatsApp leaves out. */
const privacyOfNewAccount: PrivacySettings = {
  readreceipts: 'all',
  profile: 'all',
  status: 'all',
  online: 'all',
  last: 'all',
  groupadd: 'all',
};

const INVITE_BASE = 'https://chat.whatsapp.com/';
const badCode = ['group_not_found', 'inviteCode: the code is not, or no longer, valid'] as const;
const inviteMeanings = { 400: badCode, 401: badCode, 404: badCode, 406: badCode, 410: badCode };

/** Baileys: WhatsApp needs both addresses of a person to block one. */
const blockMeanings = {
  400: ['network_refused', 'number: WhatsApp blocks only people whose phone number is known'],
} as const;

/** Phones show a presence for about 20 s. */
const RENEW_PRESENCE_MS = 10_000;
/** The longest delay, after which the gateway shows `paused` (decisions B). */
const PRESENCE_MS = 60_000;

export class WhatsAppSession implements Session {
  readonly #parts: SessionParts;
  /** By chat. */
  readonly #renewals = new Map<string, NodeJS.Timeout>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  get ownName(): string | undefined {
    return this.#parts.connection.ownName;
  }

  get ownJid(): string {
    return this.#parts.connection.ownJid;
  }

  state(): ConnectionState {
    return this.#parts.connection.state;
  }

  connect(pairingNumber?: string): Promise<void> {
    return this.#parts.connection.connect(pairingNumber);
  }

  async logout(): Promise<void> {
    await this.#parts.connection.logout();
    await this.#parts.forget();
  }

  pairing(): Pairing | undefined {
    return this.#parts.connection.pairing;
  }

  resolve(address: Address, field: string): Promise<Chat> {
    return this.#parts.recipients.resolve(this.#parts.connection.line(), address, field);
  }

  sendVoice(message: OutgoingVoice, signal: AbortSignal): Promise<void> {
    return this.#parts.outgoing.voice(message, signal);
  }

  sendText(message: OutgoingText, signal: AbortSignal): Promise<void> {
    return this.#parts.outgoing.text(message, signal);
  }

  editMessage(edit: MessageEdit): Promise<void> {
    return this.#parts.outgoing.edit(edit);
  }

  sendInvite(invite: OutgoingInvite, signal: AbortSignal): Promise<void> {
    return this.#parts.outgoing.text(invite, signal);
  }

  async showPresence(chat: Chat, presence: Presence): Promise<void> {
    clearInterval(this.#renewals.get(chat.jid));
    this.#renewals.delete(chat.jid);
    await this.#show(chat, presence);
    if (presence === 'composing' || presence === 'recording') {
      this.#renew(chat, presence);
    }
  }

  async #show(chat: Chat, presence: Presence): Promise<void> {
    const { connection, identities } = this.#parts;
    const { socket } = connection.line();
    // `available` and `unavailable` go to everybody, not to one chat.
    const isForAll = presence === 'available' || presence === 'unavailable';
    const to = isForAll ? undefined : await identities.addressed(chat.jid);
    await asked('show a presence', socket.sendPresenceUpdate(presence, to));
  }

  /** Until another presence follows, or for {@link PRESENCE_MS}. */
  #renew(chat: Chat, presence: Presence): void {
    const untilMs = performance.now() + PRESENCE_MS;
    clearInterval(this.#renewals.get(chat.jid));
    const timer = setInterval(() => {
      if (performance.now() < untilMs) {
        this.#show(chat, presence).catch(() => clearInterval(timer));
      } else {
        clearInterval(timer);
      }
    }, RENEW_PRESENCE_MS);
    this.#renewals.set(chat.jid, timer.unref());
  }

  addressesOf(jid: string): Promise<string[]> {
    return this.#parts.identities.addressesOf(jid);
  }

  contacts(): Promise<Contact[]> {
    return this.#parts.book.contacts();
  }

  chats(): Promise<NetworkChat[]> {
    return this.#parts.book.chats();
  }

  async participants(group: Address): Promise<Participant[]> {
    const line = this.#parts.connection.line();
    const { groups, identities, book } = this.#parts;
    const { participants } = await groups.get(line, groupJidOf(group));
    const people = new Map<string, Participant>();
    for (const { id, phoneNumber, admin } of participants) {
      const jid = (await identities.shown(id, phoneNumber)) ?? id;
      people.set(jid, { jid, name: await book.nameOf(jid), admin: admin ?? null });
    }
    return [...people.values()];
  }

  async inviteCode(group: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    const { socket } = this.#parts.connection.line();
    return invitation(
      await asked('give an invite code', socket.groupInviteCode(groupJidOf(group)), groupMeanings),
    );
  }

  async revokeInvite(group: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    const { socket } = this.#parts.connection.line();
    return invitation(
      await asked('revoke the invite code', socket.groupRevokeInvite(groupJidOf(group)), groupMeanings),
    );
  }

  async acceptInvite(inviteCode: string): Promise<{ groupJid: string }> {
    const { socket } = this.#parts.connection.line();
    const groupJid = await asked('let the instance in', socket.groupAcceptInvite(inviteCode), inviteMeanings);
    if (groupJid === undefined) {
      throw new GatewayError(...badCode);
    }
    return { groupJid };
  }

  async setBlocked(chat: Chat, blocked: boolean): Promise<void> {
    const { connection, book } = this.#parts;
    const { socket } = connection.line();
    await asked(
      'change who is blocked',
      socket.updateBlockStatus(chat.jid, blocked ? 'block' : 'unblock'),
      blockMeanings,
    );
    await (blocked ? book.learnBlocked([chat.jid], false) : book.learnUnblocked([chat.jid]));
  }

  async privacySettings(): Promise<PrivacySettings> {
    const { socket } = this.#parts.connection.line();
    const received = await asked('tell the privacy settings', socket.fetchPrivacySettings(true));
    const settings = PrivacySettings.safeParse({ ...privacyOfNewAccount, ...received });
    if (!settings.success) {
      throw new GatewayError('network_refused', 'WhatsApp returned unknown privacy settings', {
        cause: settings.error,
      });
    }
    return settings.data;
  }

  async applySettings(settings: InstanceSettings): Promise<void> {
    this.#parts.settingsChanged(settings);
    if (this.state() === 'open') {
      const { socket } = this.#parts.connection.line();
      const presence = settings.alwaysOnline ? 'available' : 'unavailable';
      await asked('show a presence', socket.sendPresenceUpdate(presence));
    }
  }

  async rejectCall({ callId, fromJid }: IncomingCall): Promise<void> {
    const { connection, incoming } = this.#parts;
    await asked(
      'reject the call',
      connection.line().socket.rejectCall(callId, incoming.callerOf(callId) ?? fromJid),
    );
  }
}

function invitation(inviteCode: string | undefined): { inviteUrl: string; inviteCode: string } {
  if (inviteCode === undefined) {
    throw new GatewayError('network_refused', 'WhatsApp gave no invite code for the group');
  }
  return { inviteUrl: `${INVITE_BASE}${inviteCode}`, inviteCode };
}
