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
import type { Incoming } from './incoming.ts';
import { asked, groupMeanings } from './network-request.ts';
import type { Outgoing } from './outgoing.ts';
import { phoneJid } from './phone-jid.ts';
import type { Recipients } from './recipients.ts';

interface SessionParts {
  readonly connection: Connection;
  readonly book: AddressBook;
  readonly groups: Groups;
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

export class WhatsAppSession implements Session {
  readonly #parts: SessionParts;

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
    const { socket } = this.#parts.connection.line();
    // `available` and `unavailable` go to everybody, not to one chat.
    const whole = presence === 'available' || presence === 'unavailable';
    const shown = whole ? socket.sendPresenceUpdate(presence) : socket.sendPresenceUpdate(presence, chat.jid);
    await asked('show a presence', shown);
  }

  contacts(): Promise<Contact[]> {
    return this.#parts.book.contacts();
  }

  chats(): Promise<NetworkChat[]> {
    return this.#parts.book.chats();
  }

  async participants(group: Address): Promise<Participant[]> {
    const line = this.#parts.connection.line();
    const { participants } = await this.#parts.groups.get(line.socket, groupJidOf(group));
    return Promise.all(
      participants.map(async ({ id, phoneNumber, admin }) => {
        const jid = (await phoneJid(line, id, phoneNumber)) ?? id;
        return { jid, name: await this.#parts.book.nameOf(jid), admin: admin ?? null };
      }),
    );
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
    const line = this.#parts.connection.line();
    await asked(
      'change who is blocked',
      line.socket.updateBlockStatus(chat.jid, blocked ? 'block' : 'unblock'),
    );
    await (blocked
      ? this.#parts.book.learnBlocked(line, [chat.jid], false)
      : this.#parts.book.learnUnblocked(line, [chat.jid]));
  }

  async privacySettings(): Promise<PrivacySettings> {
    const { socket } = this.#parts.connection.line();
    const received = await asked('tell the privacy settings', socket.fetchPrivacySettings(true));
    const settings = PrivacySettings.safeParse({ ...privacyOfNewAccount, ...received });
    if (!settings.success) {
      throw new GatewayError('network_refused', 'WhatsApp told the privacy settings in words that are new', {
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
