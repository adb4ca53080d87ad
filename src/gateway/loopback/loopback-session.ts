/** An instance on the loopback network. */

import { type Address, mayMean } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import { plainContext } from 'soundpost-chat/message-log';
import type {
  Chat,
  Contact,
  IncomingCall,
  MessageContext,
  MessageEdit,
  OtherSide,
  OutgoingInvite,
  OutgoingText,
  OutgoingVoice,
  Participant,
  Presence,
  Session,
  TransportReports,
} from 'soundpost-chat/transport';
import type { MessageContent } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { ConnectionState, InstanceSettings } from 'soundpost-contract/gateway-instances';
import type { PrivacySettings } from 'soundpost-contract/gateway-operations';
import { type Directory, digitsOf, groupJid, personJid, suffixes } from './directory.ts';
import { type Group, type Groups, groupNotFound } from './groups.ts';
import type { Calls } from './people-side.ts';
import { Presences } from './presences.ts';
import type { Relay } from './relay.ts';

interface LoopbackSessionParts {
  readonly instance: Instance;
  readonly digits: string;
  readonly directory: Directory;
  readonly groups: Groups;
  readonly relay: Relay;
  readonly calls: Calls;
  readonly reports: TransportReports;
  readonly publicUrl: string;
  readonly otherSide: OtherSide;
  readonly isAway: boolean;
}

export class LoopbackSession implements Session {
  readonly #parts: LoopbackSessionParts;
  readonly ownJid: string;
  readonly ownName: string;
  readonly otherSide: OtherSide;
  readonly #presences: Presences;
  #settings: InstanceSettings;
  #state: ConnectionState;

  constructor(parts: LoopbackSessionParts) {
    this.#parts = parts;
    this.#presences = new Presences(parts);
    this.#settings = parts.instance.settings;
    this.#state = parts.isAway ? 'close' : 'open';
    this.ownJid = personJid(parts.digits);
    this.ownName = parts.instance.name;
    this.otherSide = parts.otherSide;
  }

  state(): ConnectionState {
    return this.#state;
  }

  async connect(): Promise<void> {
    const { relay, digits, reports, instance } = this.#parts;
    this.#state = 'open';
    const wasAway = await relay.isAway(digits);
    if (wasAway) {
      await reports.connectionChanged(instance.id, 'open');
    }
    await relay.comeBack(digits);
    if (wasAway) {
      await this.#syncHistory();
    }
    if (this.#settings.alwaysOnline) {
      await this.#presences.showAvailable(true);
    }
  }

  async logout(): Promise<void> {
    const { relay, digits, reports, instance } = this.#parts;
    this.#state = 'close';
    await relay.leave(digits);
    await this.#presences.showAvailable(false);
    await reports.connectionChanged(instance.id, 'close', 'logged out', 401);
  }

  async applySettings(settings: InstanceSettings): Promise<void> {
    const before = this.#settings;
    this.#settings = settings;
    if (settings.alwaysOnline !== before.alwaysOnline) {
      await this.#presences.showAvailable(settings.alwaysOnline);
    }
    if (settings.syncFullHistory && !before.syncFullHistory) {
      await this.#syncHistory();
    }
  }

  async resolve(address: Address, field: string): Promise<Chat> {
    const { directory } = this.#parts;
    if (mayMean(address, 'person', suffixes)) {
      const member = await directory.member(address.digits);
      if (member !== undefined) {
        return { jid: personJid(address.digits), name: member.name, isGroup: false };
      }
    }
    const group = await this.#ownGroup(address);
    if (group !== undefined) {
      return { jid: groupJid(address.digits), name: group.subject, isGroup: true };
    }
    throw new GatewayError('unknown_recipient', `${field}: nobody on the network has this number`);
  }

  async sendVoice({ messageId, chat, content, context }: OutgoingVoice): Promise<void> {
    await this.#send(messageId, chat, { audioMessage: content }, context);
  }

  async sendText({ messageId, chat, text, context }: OutgoingText): Promise<void> {
    await this.#send(messageId, chat, { conversation: text }, context ?? plainContext);
  }

  async sendInvite(invite: OutgoingInvite): Promise<void> {
    await this.sendText(invite);
  }

  async editMessage({ chat, key, text }: MessageEdit): Promise<void> {
    const { relay, digits, instance } = this.#parts;
    await relay.accept({
      messageId: key.id,
      from: { instanceId: instance.id, digits, name: instance.name },
      to: { digits: digitsOf(chat.jid), isGroup: chat.isGroup },
      timestampSeconds: nowSeconds(),
      // Only the text travels; the receiver's copy determines its form.
      content: { conversation: text },
      context: plainContext,
      isEdit: true,
    });
  }

  async showPresence(chat: Chat, presence: Presence): Promise<void> {
    if (presence === 'available' || presence === 'unavailable') {
      await this.#presences.showAvailable(presence === 'available');
    }
    await this.#presences.show(chat, presence);
  }

  async contacts(): Promise<Contact[]> {
    const { directory, groups, digits, instance } = this.#parts;
    const place = await directory.placeOf(instance);
    const [people, blocked] = await Promise.all([directory.addressBook(place), directory.blockedBy(digits)]);
    const inGroups = await Promise.all(
      place.groups.map(async (group) => ({
        jid: groupJid(group),
        name: (await groups.find(group))?.subject,
      })),
    );
    return [
      ...people.map(({ jid, name, digits: other }) => ({
        jid,
        name,
        isGroup: false,
        isSaved: true,
        blocked: blocked.has(other),
      })),
      ...inGroups.flatMap(({ jid, name }) =>
        name === undefined ? [] : [{ jid, name, isGroup: true, isSaved: true, blocked: false }],
      ),
    ];
  }

  async participants(address: Address): Promise<Participant[]> {
    const group = await this.#requireGroup(address);
    return Promise.all(
      group.participants.map(async ({ digits, admin }) => ({
        jid: personJid(digits),
        name: await this.#parts.directory.nameOf(digits),
        admin,
      })),
    );
  }

  async inviteCode(address: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    return this.#invitation(address, false);
  }

  async revokeInvite(address: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    return this.#invitation(address, true);
  }

  async acceptInvite(inviteCode: string): Promise<{ groupJid: string }> {
    const { groups, directory, digits, instance } = this.#parts;
    const { groupDigits, isNew } = await groups.enter(inviteCode, digits);
    // Repeated even if it is not new: a process may have died before this call.
    await directory.enterGroup(instance, groupDigits);
    if (isNew) {
      await this.#announceEntry(groupDigits);
      await this.#syncHistory();
    }
    return { groupJid: groupJid(groupDigits) };
  }

  async setBlocked(chat: Chat, blocked: boolean): Promise<void> {
    await this.#parts.directory.setBlocked(this.#parts.digits, digitsOf(chat.jid), blocked);
  }

  async privacySettings(): Promise<PrivacySettings> {
    const { readMessages, alwaysOnline } = this.#settings;
    return {
      readreceipts: readMessages ? 'all' : 'none',
      profile: 'all',
      status: 'all',
      online: alwaysOnline ? 'all' : 'match_last_seen',
      // This network does not share when someone was last online.
      last: 'none',
      // An invitation only takes effect when the instance accepts it.
      groupadd: 'none',
    };
  }

  async rejectCall({ callId }: IncomingCall): Promise<void> {
    await this.#parts.calls.end(callId);
  }

  async #send(
    messageId: string,
    chat: Chat,
    content: MessageContent,
    context: MessageContext,
  ): Promise<void> {
    const { relay, instance, digits } = this.#parts;
    await relay.accept({
      messageId,
      from: { instanceId: instance.id, digits, name: instance.name },
      to: { digits: digitsOf(chat.jid), isGroup: chat.isGroup },
      timestampSeconds: nowSeconds(),
      content,
      context: { ...context, mentioned: [...context.mentioned] },
    });
  }

  /** Notifies every instance in the group, including this one. */
  async #announceEntry(groupDigits: string): Promise<void> {
    const { groups, directory, reports } = this.#parts;
    for (const { digits } of (await groups.find(groupDigits))?.participants ?? []) {
      const member = await directory.member(digits);
      if (member?.instanceId) {
        await reports.participantsChanged(member.instanceId, {
          groupJid: groupJid(groupDigits),
          action: 'add',
          participants: [this.ownJid],
          authorJid: this.ownJid,
        });
      }
    }
  }

  async #syncHistory(): Promise<void> {
    const { relay, instance, digits } = this.#parts;
    if (this.#settings.syncFullHistory) {
      await relay.reportHistory(instance, digits);
    }
  }

  async #invitation(address: Address, renew: boolean): Promise<{ inviteUrl: string; inviteCode: string }> {
    const { groups, digits, publicUrl } = this.#parts;
    const group = await this.#requireGroup(address);
    if (!group.participants.some((participant) => participant.digits === digits && participant.admin)) {
      throw new GatewayError('network_refused', 'groupJid: only an admin of the group may invite');
    }
    const inviteCode = await groups.inviteCode(address.digits, renew);
    return { inviteCode, inviteUrl: `${publicUrl}/i/${inviteCode}` };
  }

  async #requireGroup(address: Address): Promise<Group> {
    const group = await this.#ownGroup(address);
    if (group === undefined) {
      throw groupNotFound('groupJid');
    }
    return group;
  }

  async #ownGroup(address: Address): Promise<Group | undefined> {
    const { groups, digits } = this.#parts;
    const group = mayMean(address, 'group', suffixes) ? await groups.find(address.digits) : undefined;
    return group?.participants.some((participant) => participant.digits === digits) ? group : undefined;
  }
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);
