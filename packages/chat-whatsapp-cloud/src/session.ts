/** The gateway's operations on a business number of the Cloud API; docs/whatsapp-cloud.md. */
import { setTimeout as wait } from 'node:timers/promises';
import { within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Address } from 'soundpost-chat/address';
import type { ChatBook } from 'soundpost-chat/chat-book';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import {
  beforeSend,
  type Chat,
  type Contact,
  type MessageContext,
  type OutgoingInvite,
  type OutgoingText,
  type OutgoingVoice,
  type Participant,
  type Presence,
  type Session,
  type TransportReports,
} from 'soundpost-chat/transport';
import { GatewayError, gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import type {
  ConnectionState,
  InstanceSettings,
  WhatsAppCloudConnection,
} from 'soundpost-contract/gateway-instances';
import { redisNow } from 'soundpost-kit/redis/clock';
import { untilTaken } from 'soundpost-kit/redis/until-taken';
import { z } from 'zod';
import { hiddenJid, localOf, meaning, personJid, recipientFields } from './addresses.ts';
import type { Graph } from './graph.ts';
import { sentenceOf } from './refusals.ts';

interface SessionParts {
  readonly instance: Instance;
  readonly connection: WhatsAppCloudConnection;
  readonly graph: Graph;
  readonly book: ChatBook;
  readonly log: Pick<MessageLog, 'find'>;
  readonly lease: Lease;
  readonly reports: TransportReports;
  /** Aborted when this process stops serving. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
}

/** …/cloud-api/reference/media "Supported media types": audio 16 MB. */
const MAX_VOICE_BYTES = 16 * 1024 * 1024;
/** …/cloud-api/messages/text-messages: 4,096 characters. */
const MAX_TEXT_CHARACTERS = 4096;
/** …/cloud-api/guides/send-messages "Customer service windows". */
const WINDOW_MS = 24 * 60 * 60 * 1000;
const WINDOW_CLOSED = 131047;
const NOTED_WITHIN_MS = 500;
const CHECK_AGAIN_MS = 5000;

const Sent = z.object({ messages: z.array(z.object({ id: z.string().min(1).max(512) })).min(1) });
const Uploaded = z.object({ id: z.string().min(1) });
const Done = z.object({ success: z.boolean() });
const OwnNumber = z.object({ display_phone_number: z.string() });
const Group = z.object({
  subject: z.string().optional(),
  participants: z
    .array(z.object({ wa_id: z.string().optional(), user_id: z.string().optional() }))
    .default([]),
});
const Invitation = z.object({ invite_link: z.url({ protocol: /^https$/ }) });

const product = { messaging_product: 'whatsapp' } as const;

export class CloudSession implements Session {
  readonly knowsNoIds = true;
  readonly lacks = ['mentioned', 'mentionsEveryOne'] as const;
  readonly #parts: SessionParts;
  #ownJid = '';
  #state: ConnectionState = 'close';
  /** Of the latest connect; aborted when that ends. */
  #connecting = new AbortController();
  #settings: InstanceSettings;
  /** A caller logged it out, so nothing that comes in concerns it. */
  #isLoggedOut: boolean;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#settings = parts.instance.settings;
    this.#isLoggedOut = parts.instance.loggedOut;
  }

  get isLoggedOut(): boolean {
    return this.#isLoggedOut;
  }

  get ownJid(): string {
    return this.#ownJid;
  }

  get settings(): InstanceSettings {
    return this.#settings;
  }

  state(): ConnectionState {
    return this.#state;
  }

  async connect(): Promise<void> {
    this.#isLoggedOut = false;
    if (this.#state !== 'close') return;
    this.#state = 'connecting';
    this.#connecting = new AbortController();
    const signal = AbortSignal.any([this.#connecting.signal, this.#parts.closing]);
    // Not awaited: reporting the state waits for this session.
    this.#check(signal).catch((error: unknown) =>
      this.#parts.logger.error({ err: error, instance: this.#parts.instance.name }, 'connecting failed'),
    );
  }

  async logout(): Promise<void> {
    this.#isLoggedOut = true;
    await this.end('logged out');
  }

  /** Closes the connection until a caller connects it, such as with an expired token. */
  async end(reason: string): Promise<void> {
    if (this.#state === 'close') return;
    this.#state = 'close';
    this.#connecting.abort();
    await this.#parts.reports.connectionChanged(this.#parts.instance.id, 'close', reason);
  }

  async applySettings(settings: InstanceSettings): Promise<void> {
    this.#settings = settings;
  }

  /** Nobody can be asked who is on WhatsApp: that shows when something is sent. */
  async resolve(address: Address, field: string): Promise<Chat> {
    const { book } = this.#parts;
    const meant = meaning(address);
    if (meant === undefined)
      throw new GatewayError('unknown_recipient', `${field}: nobody on WhatsApp has this number`);
    const known = await book.find(meant.jid);
    if (meant.isGroup && known?.isGroup !== true) {
      const { subject = localOf(meant.jid) } = await this.#group(meant.jid, 'unknown_recipient', field);
      return { ...meant, name: subject };
    }
    return { ...meant, name: known?.name ?? localOf(meant.jid) };
  }

  async sendVoice(voice: OutgoingVoice, signal: AbortSignal): Promise<void> {
    const { chat, file, content } = voice;
    await beforeSend(() => this.#requireOpenWindow(chat));
    if (Number(content.fileLength) > MAX_VOICE_BYTES) {
      throw new GatewayError('payload_too_large', 'audio: voice messages can be 16 MB at most');
    }
    const { id } = await this.#parts.graph.ask({
      method: 'POST',
      path: `${this.#parts.connection.phoneNumberId}/media`,
      form: {
        ...product,
        type: content.mimetype,
        file: { path: file, name: 'voice.ogg', type: content.mimetype },
      },
      answer: Uploaded,
      signal,
    });
    await this.#send(voice, { type: 'audio', audio: { id, voice: true } }, signal);
  }

  async sendText(text: OutgoingText, signal: AbortSignal): Promise<void> {
    if (text.text.length > MAX_TEXT_CHARACTERS) {
      throw new GatewayError('bad_request', 'text: WhatsApp accepts 4,096 characters at most');
    }
    await beforeSend(() => this.#requireOpenWindow(text.chat));
    const body = { body: text.text, preview_url: text.context?.linkPreview ?? false };
    await this.#send(text, { type: 'text', text: body }, signal);
  }

  sendInvite(invite: OutgoingInvite, signal: AbortSignal): Promise<void> {
    return this.sendText({ ...invite, context: { ...noContext, linkPreview: true } }, signal);
  }

  /**
   * WhatsApp shows "typing" with a request that also marks the last message as read, so not without
   * `readMessages`; in groups there is neither. It ends by itself, after 25 s or with a message.
   */
  async showPresence(chat: Chat, presence: Presence): Promise<void> {
    const { book, graph, connection, reports, instance, logger } = this.#parts;
    const isWriting = presence === 'composing' || presence === 'recording';
    const lastInId = chat.isGroup ? undefined : (await book.find(chat.jid))?.lastInId;
    if (!isWriting || lastInId === undefined || !this.#settings.readMessages) return;
    try {
      await graph.ask({
        method: 'POST',
        path: `${connection.phoneNumberId}/messages`,
        json: { ...product, status: 'read', message_id: lastInId, typing_indicator: { type: 'text' } },
        answer: Done,
      });
      await reports.presenceChanged(instance.id, chat.jid, presence);
    } catch (error) {
      // A message must not fail because nothing was shown before it.
      logger.warn({ err: error, instance: instance.name }, 'a presence was not shown');
    }
  }

  async markRead(messageId: string): Promise<void> {
    const { graph, connection } = this.#parts;
    await graph.ask({
      method: 'POST',
      path: `${connection.phoneNumberId}/messages`,
      json: { ...product, status: 'read', message_id: messageId },
      answer: Done,
    });
  }

  contacts(): Promise<Contact[]> {
    return this.#parts.book.contacts();
  }

  /** Everybody but the business itself, which made the group and is its only admin. */
  async participants(address: Address): Promise<Participant[]> {
    const jid = this.#requireGroupJid(address);
    const { participants } = await this.#group(jid, 'group_not_found', 'groupJid');
    const own: Participant = { jid: this.#ownJid, name: this.#parts.instance.name, admin: 'superadmin' };
    const others = await Promise.all(
      participants.flatMap(({ wa_id: waId, user_id: userId }) => {
        const member = waId ? personJid(waId) : userId && hiddenJid(userId);
        return member ? [this.#member(member)] : [];
      }),
    );
    return [own, ...others];
  }

  async setBlocked(chat: Chat, blocked: boolean): Promise<void> {
    const { graph, connection, book } = this.#parts;
    await graph.ask({
      method: blocked ? 'POST' : 'DELETE',
      path: `${connection.phoneNumberId}/block_users`,
      json: { ...product, block_users: [{ user: localOf(chat.jid) }] },
      answer: z.object({ block_users: z.object({}) }),
    });
    await book.learn(chat.jid, { isGroup: false, blocked });
  }

  /** As the network last told it: asking there makes a new one and ends the old one. */
  async inviteCode(address: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    const jid = this.#requireGroupJid(address);
    const known = await this.#parts.book.find(jid);
    if (known?.inviteUrl !== undefined) return invitation(known.inviteUrl);
    await this.#group(jid, 'group_not_found', 'groupJid');
    throw new GatewayError(
      'network_refused',
      'groupJid: no invite link of this group is known; make one with POST /group/revokeInviteCode, which ends the present one',
    );
  }

  async revokeInvite(address: Address): Promise<{ inviteUrl: string; inviteCode: string }> {
    const jid = this.#requireGroupJid(address);
    const { invite_link: inviteUrl } = await this.#parts.graph.ask({
      method: 'POST',
      path: `${encodeURIComponent(localOf(jid))}/invite_link`,
      json: product,
      answer: Invitation,
    });
    await this.#parts.book.learn(jid, { isGroup: true, inviteUrl });
    return invitation(inviteUrl);
  }

  async #send(
    { messageId, chat, context }: OutgoingText | OutgoingVoice,
    content: object,
    signal: AbortSignal,
  ): Promise<void> {
    const { graph, connection, lease, book, reports, instance } = this.#parts;
    const quotedId = await beforeSend(() => this.#quotedId(context));
    lease.assert();
    const { messages } = await graph.ask({
      method: 'POST',
      path: `${connection.phoneNumberId}/messages`,
      json: {
        ...product,
        ...recipientFields(chat),
        ...(quotedId === undefined ? {} : { context: { message_id: quotedId } }),
        ...content,
        biz_opaque_callback_data: messageId,
      },
      answer: Sent,
      isSend: true,
      signal,
    });
    // WhatsApp has it: the answer no longer depends on our records.
    const networkId = messages[0]?.id;
    const noted = untilTaken(async () => {
      await reports.statusChanged(instance.id, messageId, 'PENDING', { networkId });
      await book.learn(chat.jid, { isGroup: chat.isGroup });
    });
    await within(NOTED_WITHIN_MS, () => noted).catch(() => undefined);
  }

  /** WhatsApp's id of the quoted message; undefined for one that WhatsApp cannot know. */
  async #quotedId(context: MessageContext | undefined): Promise<string | undefined> {
    const id = context?.quoted?.id;
    if (id === undefined) return undefined;
    const logged = await this.#parts.log.find(this.#parts.instance.id, id);
    const networkId = logged?.networkId ?? id;
    return networkId.startsWith('wamid.') ? networkId : undefined;
  }

  /** Nobody whose last message is unknown is refused. */
  async #requireOpenWindow({ jid, isGroup }: Chat): Promise<void> {
    const heardAtMs = isGroup ? undefined : (await this.#parts.book.find(jid))?.heardAtMs;
    if (heardAtMs !== undefined && redisNow() - heardAtMs > WINDOW_MS) {
      throw new GatewayError('network_refused', sentenceOf({ code: WINDOW_CLOSED, words: '' }));
    }
  }

  async #group(
    jid: string,
    code: 'unknown_recipient' | 'group_not_found',
    field: string,
  ): Promise<z.output<typeof Group>> {
    try {
      const group = await this.#parts.graph.ask({
        method: 'GET',
        path: `${encodeURIComponent(localOf(jid))}?fields=subject,participants`,
        answer: Group,
      });
      await this.#parts.book.learn(jid, { isGroup: true, name: group.subject });
      return group;
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'network_refused') throw error;
      throw new GatewayError(code, `${field}: the account is in no group with this JID`, { cause: error });
    }
  }

  #requireGroupJid(address: Address): string {
    const meant = meaning(address);
    if (meant?.isGroup !== true) {
      throw new GatewayError('group_not_found', 'groupJid: the account is in no group with this JID');
    }
    return meant.jid;
  }

  async #member(jid: string): Promise<Participant> {
    return { jid, name: (await this.#parts.book.find(jid))?.name ?? localOf(jid), admin: null };
  }

  /** Asks for the own number until it is known, or the token is refused. */
  async #check(signal: AbortSignal): Promise<void> {
    const { graph, connection, reports, instance } = this.#parts;
    while (this.#state === 'connecting' && !signal.aborted) {
      try {
        const { display_phone_number: number } = await graph.ask({
          method: 'GET',
          path: `${connection.phoneNumberId}?fields=display_phone_number`,
          answer: OwnNumber,
          signal,
        });
        if (signal.aborted) return;
        this.#ownJid = personJid(number);
        this.#state = 'open';
        await reports.connectionChanged(instance.id, 'open');
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof GatewayError) || this.state() === 'open') throw error;
        if (error.code === 'network_refused' || !gatewayErrorCatalogue[error.code].retryable) {
          await this.end(error.message);
        } else {
          await wait(CHECK_AGAIN_MS, undefined, { ref: false, signal }).catch(() => undefined);
        }
      }
    }
  }
}

const noContext = { quoted: undefined, mentioned: [], mentionsEveryOne: false };

function invitation(inviteUrl: string): { inviteUrl: string; inviteCode: string } {
  return { inviteUrl, inviteCode: inviteUrl.slice(inviteUrl.lastIndexOf('/') + 1) };
}
