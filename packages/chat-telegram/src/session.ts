/** The operations of an instance; what a bot cannot do is left out, and answers 501. */
import type { Address } from 'soundpost-chat/address';
import type { ChatBook } from 'soundpost-chat/chat-book';
import {
  type Chat,
  type Contact,
  type MessageEdit,
  type OutgoingInvite,
  type OutgoingText,
  type OutgoingVoice,
  type Participant,
  type Presence,
  type Session,
  type TransportReports,
  UnsupportedOperation,
} from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { ConnectionState } from 'soundpost-contract/gateway-instances';
import { z } from 'zod';
import { type BotApi, Refused } from './api.ts';
import { Administrators, Chat as ApiChat, chatName, personName } from './api-types.ts';
import type { ChatActions } from './chat-actions.ts';
import { idOf, isGroupId, jidOf, targetOf } from './chat-id.ts';
import type { Connection } from './connection.ts';
import { refusal } from './failure.ts';
import type { Outgoing } from './outgoing.ts';

interface SessionParts {
  readonly instanceId: string;
  readonly api: BotApi;
  readonly connection: Connection;
  readonly book: ChatBook;
  readonly outgoing: Outgoing;
  readonly actions: ChatActions;
  readonly reports: TransportReports;
}

const NOT_A_PERSON = 'Telegram addresses people by the id of their chat with the bot, not by @name';

export class TelegramSession implements Session {
  readonly #parts: SessionParts;
  readonly knowsNoIds = true;
  readonly lacks = ['mentionsEveryOne'] as const;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  get ownJid(): string {
    return jidOf(this.#parts.api.ownId);
  }

  state(): ConnectionState {
    return this.#parts.connection.state;
  }

  async connect(): Promise<void> {
    this.#parts.connection.connect();
  }

  async logout(): Promise<void> {
    this.#parts.actions.close();
    await this.#parts.connection.logout();
  }

  async resolve(address: Address, field: string): Promise<Chat> {
    const { book } = this.#parts;
    const target = targetOf(address, field);
    if ('name' in target) return this.#lookUp(target.name, field);
    const first = jidOf(target.id);
    const jid = (await book.find(first))?.movedTo ?? first;
    const known = await book.find(jid);
    if (known === undefined) return this.#lookUp(idOf(jid), field);
    return { jid, name: known.name ?? String(idOf(jid)), isGroup: isGroupId(idOf(jid)) };
  }

  sendVoice(message: OutgoingVoice, signal: AbortSignal): Promise<void> {
    return this.#parts.outgoing.voice(message, signal);
  }

  sendText(message: OutgoingText, signal: AbortSignal): Promise<void> {
    return this.#parts.outgoing.text(message, signal);
  }

  sendInvite(invite: OutgoingInvite, signal: AbortSignal): Promise<void> {
    return this.#parts.outgoing.text(invite, signal);
  }

  editMessage(edit: MessageEdit): Promise<void> {
    return this.#parts.outgoing.edit(edit);
  }

  async showPresence(chat: Chat, presence: Presence): Promise<void> {
    const { actions, reports, instanceId } = this.#parts;
    if (presence === 'available' || presence === 'unavailable') {
      throw new UnsupportedOperation(`the presence ${presence}`, 'telegram');
    }
    if (presence === 'paused') actions.stop(idOf(chat.jid));
    else {
      const action = presence === 'recording' ? 'record_voice' : 'typing';
      await this.#asked('number', () => actions.show(idOf(chat.jid), action));
    }
    await reports.presenceChanged(instanceId, chat.jid, presence);
  }

  contacts(): Promise<Contact[]> {
    return this.#parts.book.contacts();
  }

  /** A bot sees the administrators only. */
  async participants(group: Address): Promise<Participant[]> {
    const id = await this.#groupId(group);
    const administrators = await this.#asked('groupJid', () =>
      this.#parts.api.call('getChatAdministrators', { chat_id: id }, Administrators),
    );
    return administrators.map(({ status, user }) => ({
      jid: jidOf(user.id),
      name: personName(user),
      admin: status === 'creator' ? 'superadmin' : 'admin',
    }));
  }

  /** The link that the bot made first: Telegram would make a new one each time, and revoke that. */
  async inviteCode(group: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    const id = await this.#groupId(group);
    const known = await this.#parts.book.find(jidOf(id));
    return known?.inviteUrl === undefined ? this.#newInvite(id) : invitation(known.inviteUrl);
  }

  async revokeInvite(group: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    return this.#newInvite(await this.#groupId(group));
  }

  async #newInvite(id: number): Promise<{ inviteUrl: string; inviteCode: string }> {
    const url = await this.#asked('groupJid', () =>
      this.#parts.api.call('exportChatInviteLink', { chat_id: id }, z.url()),
    );
    await this.#parts.book.learn(jidOf(id), { inviteUrl: url });
    return invitation(url);
  }

  /** Throws group_not_found. */
  async #groupId(group: Address): Promise<number> {
    const chat = await this.resolve(group, 'groupJid').catch((error: unknown) => {
      const unknown = error instanceof GatewayError && error.code === 'unknown_recipient';
      throw unknown ? new GatewayError('group_not_found', error.messages, { cause: error }) : error;
    });
    if (!chat.isGroup) {
      throw new GatewayError(
        'group_not_found',
        'groupJid: is the id of a person; a group has a negative one',
      );
    }
    return idOf(chat.jid);
  }

  async #lookUp(chat: number | string, field: string): Promise<Chat> {
    const { api, book } = this.#parts;
    const found = await this.#asked(field, () => api.call('getChat', { chat_id: chat }, ApiChat));
    if (typeof chat === 'string' && found.type === 'private') {
      throw new GatewayError('unknown_recipient', `${field}: ${NOT_A_PERSON}`);
    }
    const [jid, name, isGroup] = [jidOf(found.id), chatName(found), isGroupId(found.id)];
    await book.learn(jid, { name, isGroup });
    return { jid, name, isGroup };
  }

  async #asked<Answer>(field: string, work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      const failure = refusal(field, error);
      if (error instanceof Refused && error.code === 401 && failure instanceof Error) {
        this.#parts.connection.end(failure.message);
      }
      throw failure;
    }
  }
}

/** `https://t.me/+<code>`, before 2021 `https://t.me/joinchat/<code>`. */
function invitation(inviteUrl: string): { inviteUrl: string; inviteCode: string } {
  return { inviteUrl, inviteCode: inviteUrl.slice(inviteUrl.lastIndexOf('/') + 1).replace(/^\+/, '') };
}
