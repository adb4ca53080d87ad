/** What an instance sends and changes. The gateway has marked each send before (`knowsNoIds`). */
import { stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { within } from 'soundpost-base/deadline';
import { parseAddress } from 'soundpost-chat/address';
import type { ChatBook } from 'soundpost-chat/chat-book';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import {
  beforeSend,
  type Chat,
  type MessageContext,
  type MessageEdit,
  type OutgoingText,
  type OutgoingVoice,
  type TransportReports,
} from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { untilTaken } from 'soundpost-kit/redis/until-taken';
import { z } from 'zod';
import { type BotApi, MAX_UPLOAD_BYTES, NoAnswer, Refused } from './api.ts';
import { Message } from './api-types.ts';
import { idOf, isGroupId, jidOf, networkIdOf, parseNetworkId, targetOf } from './chat-id.ts';
import { refusal, TOO_LARGE } from './failure.ts';
import { markMentions } from './mentions.ts';

interface OutgoingOptions {
  readonly instanceId: string;
  readonly api: BotApi;
  readonly log: Pick<MessageLog, 'find' | 'moveChat'>;
  readonly book: ChatBook;
  readonly lease: Lease;
  readonly reports: TransportReports;
  /** Called when the server says that the token is no longer valid. */
  readonly revoked: () => void;
}

/** core.telegram.org/bots/api#sendmessage and #sendvoice, in UTF-16 code units. */
const LONGEST_TEXT = 4096;
const LONGEST_CAPTION = 1024;
/** A longer wait is left to the caller: it would hold up the instance's other messages. */
const LONGEST_PAUSE_SECONDS = 5;
const NOTED_WITHIN_MS = 500;

export class Outgoing {
  readonly #options: OutgoingOptions;
  /** When chats take messages again, by id, ms on the monotonic clock. */
  readonly #pauses = new Map<number, number>();

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  async voice({ messageId, chat, file, durationMs, content, context }: OutgoingVoice, signal: AbortSignal) {
    const prepared = await beforeSend(async () => {
      if ((await stat(file)).size > MAX_UPLOAD_BYTES && this.#options.api.isPublic) {
        throw new GatewayError('payload_too_large', TOO_LARGE);
      }
      const { text: caption, entities } = await this.#marked(content.caption ?? '', context, LONGEST_CAPTION);
      return {
        duration: Math.round(durationMs / 1000),
        ...(caption === '' ? {} : { caption }),
        ...(entities.length === 0 ? {} : { caption_entities: entities }),
        ...(await this.#reply(chat, context)),
      };
    });
    await this.#send('sendVoice', messageId, chat, signal, file, prepared);
  }

  async text({ messageId, chat, text: plain, context }: OutgoingText, signal: AbortSignal) {
    const prepared = await beforeSend(async () => {
      const { text, entities } = await this.#marked(plain, context, LONGEST_TEXT);
      return {
        text,
        ...(entities.length === 0 ? {} : { entities }),
        link_preview_options: { is_disabled: true },
        ...(await this.#reply(chat, context)),
      };
    });
    await this.#send('sendMessage', messageId, chat, signal, undefined, prepared);
  }

  async edit({ chat, key, text, kind }: MessageEdit): Promise<void> {
    const { instanceId, api, log, lease } = this.#options;
    const networkId = (await log.find(instanceId, key.id))?.networkId ?? '';
    const sent = parseNetworkId(networkId);
    // A group's messages before it became a supergroup cannot be reached.
    if (sent === undefined || sent.chatId !== idOf(chat.jid)) {
      throw new GatewayError('not_editable', 'key: Telegram no longer lets the bot change it');
    }
    requireShort(text, kind === 'voice' ? LONGEST_CAPTION : LONGEST_TEXT);
    const method = kind === 'voice' ? 'editMessageCaption' : 'editMessageText';
    const change =
      kind === 'voice' ? { caption: text } : { text, link_preview_options: { is_disabled: true } };
    lease.assert();
    try {
      const place = { chat_id: sent.chatId, message_id: sent.messageId };
      await api.call(method, { ...place, ...change }, z.unknown());
    } catch (error) {
      const isSame = error instanceof Refused && /message is not modified/i.test(error.message);
      if (!isSame) throw this.#failure('key', error);
    }
  }

  /** @throws GatewayError: `timeout` if the message may have been sent, others if it was not */
  async #send(
    method: 'sendVoice' | 'sendMessage',
    messageId: string,
    chat: Chat,
    signal: AbortSignal,
    voice: string | undefined,
    { reply_parameters: reply, ...content }: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { api, lease } = this.#options;
    const firstId = idOf(chat.jid);
    let chatId = firstId;
    let sent: Message | undefined;
    for (let attempt = 1; sent === undefined; attempt += 1) {
      await this.#untilTaken(chatId, signal);
      lease.assert();
      try {
        // A message that it quotes has another id in the supergroup, if it is there at all.
        const quotation = reply === undefined || chatId !== firstId ? {} : { reply_parameters: reply };
        sent = await api.call(method, { chat_id: chatId, ...content, ...quotation }, Message, {
          signal,
          ...(voice === undefined ? {} : { voice }),
        });
      } catch (error) {
        if (error instanceof Refused && error.migratedTo !== undefined && attempt === 1) {
          const to = error.migratedTo;
          await beforeSend(() => this.moved(firstId, to));
          chatId = to;
        } else if (!this.#pause(error, chatId, attempt)) {
          throw this.#sendFailure(error, signal);
        }
      }
    }
    // Telegram has it: the answer no longer depends on our records.
    const taken = sent;
    const noted = untilTaken(async () => {
      await this.#accepted(messageId, taken);
      // The record of this message was begun in the group as it was.
      if (chatId !== firstId) await this.moved(firstId, chatId);
    });
    await within(NOTED_WITHIN_MS, () => noted).catch(() => undefined);
  }

  async #accepted(messageId: string, { chat, message_id: number }: Message): Promise<void> {
    const { instanceId, reports } = this.#options;
    const networkId = networkIdOf(chat.id, number);
    await reports.statusChanged(instanceId, messageId, 'SERVER_ACK', { networkId });
  }

  /** A group is now a supergroup with an id of its own. */
  async moved(from: number, to: number): Promise<void> {
    const { instanceId, book, log } = this.#options;
    const [old, now] = [jidOf(from), jidOf(to)];
    // Invitations to the group stay valid.
    const { name, inviteUrl } = (await book.find(old)) ?? {};
    await book.learn(now, { name, inviteUrl, isGroup: isGroupId(to) });
    await book.learn(old, { movedTo: now });
    await log.moveChat(instanceId, old, now);
  }

  /** Notes how long the chat takes nothing. @returns whether the send can wait for that */
  #pause(error: unknown, chatId: number, attempt: number): boolean {
    if (!(error instanceof Refused) || error.code !== 429) return false;
    const seconds = error.retryAfterSeconds ?? 1;
    this.#pauses.set(chatId, performance.now() + seconds * 1000);
    return attempt <= 2 && seconds <= LONGEST_PAUSE_SECONDS;
  }

  /** Throws rate_limited if that is far ahead. */
  async #untilTaken(chatId: number, signal: AbortSignal): Promise<void> {
    const leftMs = (this.#pauses.get(chatId) ?? 0) - performance.now();
    if (leftMs <= 0) {
      this.#pauses.delete(chatId);
      return;
    }
    const retryAfterSeconds = Math.ceil(leftMs / 1000);
    if (retryAfterSeconds > LONGEST_PAUSE_SECONDS) {
      throw refusal('number', new Refused(429, '', { retryAfterSeconds }));
    }
    await wait(leftMs, undefined, { signal }).catch((cause: unknown) => {
      throw refusal('number', new Refused(429, String(cause), { retryAfterSeconds }));
    });
  }

  #sendFailure(error: unknown, signal: AbortSignal): unknown {
    const isLost = error instanceof NoAnswer ? error.maybeSent : signal.aborted;
    return isLost ? lost(error) : this.#failure('number', error);
  }

  #failure(field: string, error: unknown): unknown {
    if (error instanceof Refused && error.code === 401) this.#options.revoked();
    return refusal(field, error);
  }

  /** A message that is unknown, or of another chat, is not quoted. */
  async #reply(chat: Chat, context: MessageContext | undefined): Promise<Record<string, unknown>> {
    if (context?.quoted === undefined) return {};
    const { id } = context.quoted;
    const logged = await this.#options.log.find(this.#options.instanceId, id);
    const quoted = parseNetworkId(logged?.networkId ?? id);
    if (quoted === undefined || quoted.chatId !== idOf(chat.jid)) return {};
    return { reply_parameters: { message_id: quoted.messageId, allow_sending_without_reply: true } };
  }

  async #marked(text: string, context: MessageContext | undefined, longest: number) {
    const mentioned = [];
    for (const [index, one] of (context?.mentioned ?? []).entries()) {
      const field = `mentioned[${index}]`;
      const target = targetOf(parseAddress(one, field), field);
      if ('id' in target && target.id > 0) {
        const known = await this.#options.book.find(jidOf(target.id));
        mentioned.push({ id: target.id, name: known?.name ?? String(target.id) });
      } else if (!('name' in target && new RegExp(`${target.name}(?!\\w)`, 'i').test(text))) {
        // Telegram finds an @name in the text by itself.
        throw new GatewayError(
          'bad_request',
          `${field}: on Telegram a person is mentioned by the id; write an @name into the text`,
        );
      }
    }
    const marked = markMentions(text, mentioned);
    requireShort(marked.text, longest);
    return marked;
  }
}

function lost(cause: unknown): GatewayError {
  return new GatewayError(
    'timeout',
    'the answer of Telegram was lost, so whether the message arrived is not known; it is not sent again',
    { cause },
  );
}

function requireShort(text: string, longest: number): void {
  if (text.length > longest) {
    throw new GatewayError('bad_request', `text: Telegram takes ${longest} characters at most here`);
  }
}
