/** Sends messages: each once, however often it is tried, and resolves when the server has it. */
import { randomBytes } from 'node:crypto';
import type { AnyMessageContent, WAMessage } from 'baileys';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import type {
  Chat,
  MessageContext,
  MessageEdit,
  OutgoingText,
  OutgoingVoice,
} from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Acknowledgements } from './acknowledgements.ts';
import type { Connection, Line } from './connection.ts';
import type { Groups } from './groups.ts';
import type { Identities } from './identities.ts';
import type { KeptMessages } from './kept-messages.ts';
import { asked } from './network-request.ts';
import type { Recipients } from './recipients.ts';
import type { Timers } from './timers.ts';

interface OutgoingOptions {
  readonly instanceId: string;
  readonly connection: Connection;
  readonly acknowledgements: Acknowledgements;
  readonly kept: KeptMessages;
  readonly recipients: Recipients;
  readonly identities: Identities;
  readonly groups: Groups;
  readonly timers: Timers;
  readonly log: Pick<MessageLog, 'find'>;
  readonly lease: Lease;
}

/** For sends without a request deadline. */
const SEND_TIMEOUT_MS = 30_000;

export class Outgoing {
  readonly #options: OutgoingOptions;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  async voice(
    { chat, messageId, file, content, context }: OutgoingVoice,
    signal: AbortSignal,
  ): Promise<void> {
    const line = this.#options.connection.line();
    const { mentioned, mentionsEveryOne } = context;
    const mentions = await this.#options.recipients.mentions(line, chat, mentioned, mentionsEveryOne);
    // Given length and waveform, Baileys encrypts the file without changing it. Its types lack the
    // waveform and mentions of a voice message; its code has them.
    const voice: AnyMessageContent & { waveform: Uint8Array; mentions?: string[] } = {
      audio: { url: file },
      mimetype: content.mimetype,
      ptt: true,
      seconds: content.seconds,
      waveform: Buffer.from(content.waveform, 'base64'),
      ...(mentions.length === 0 ? {} : { mentions }),
    };
    await this.#send(line, chat, messageId, voice, signal, context);
  }

  async text({ chat, messageId, text, context }: OutgoingText, signal: AbortSignal): Promise<void> {
    const line = this.#options.connection.line();
    const { mentioned = [], mentionsEveryOne = false } = context ?? {};
    const mentions = await this.#options.recipients.mentions(line, chat, mentioned, mentionsEveryOne);
    const content = { ...withoutPreview(text), ...(mentions.length === 0 ? {} : { mentions }) };
    await this.#send(line, chat, messageId, content, signal, context);
  }

  /** Throws not_editable. */
  async edit({ chat, key, text, kind }: MessageEdit): Promise<void> {
    if (kind === 'voice') {
      throw new GatewayError('not_editable', 'key.id: a voice message has no caption on WhatsApp');
    }
    using limit = deadline(SEND_TIMEOUT_MS);
    const remoteJid = await this.#options.identities.addressed(chat.jid);
    const edit = { remoteJid, fromMe: true, id: key.id };
    await this.#send(
      this.#options.connection.line(),
      chat,
      randomBytes(16).toString('hex').toUpperCase(),
      { ...withoutPreview(text), edit },
      limit.signal,
    );
  }

  async #send(
    line: Line,
    chat: Chat,
    messageId: string,
    content: AnyMessageContent,
    signal: AbortSignal,
    context?: MessageContext,
  ): Promise<void> {
    const { acknowledgements, kept, lease, identities } = this.#options;
    if ((await kept.find(line.library, messageId)) !== undefined) {
      // The server accepted it in an attempt whose result was lost.
      return;
    }
    const to = await identities.addressed(chat.jid);
    const ephemeralExpiration = await this.#timer(line, chat);
    const quoted = context && (await this.#quotation(line, chat, to, context));
    lease.assert();
    const accepted = acknowledgements.wait(messageId);
    const sending = asked(
      'take the message',
      line.socket.sendMessage(to, content, {
        messageId,
        ...(quoted ? { quoted } : {}),
        ...(ephemeralExpiration > 0 ? { ephemeralExpiration } : {}),
      }),
    );
    try {
      const sent = await untilAborted(sending, signal);
      await untilAborted(accepted, signal);
      if (sent !== undefined) {
        await kept.keep(line.library, sent);
      }
    } finally {
      acknowledgements.forget(messageId);
    }
  }

  /** The chat's disappearing timer, s; 0: off. */
  async #timer(line: Line, chat: Chat): Promise<number> {
    const { groups, timers } = this.#options;
    return chat.isGroup ? ((await groups.get(line, chat.jid)).ephemeralDuration ?? 0) : timers.of(chat.jid);
  }

  /** @param remoteJid the chat as WhatsApp gets it: another address looks like another chat */
  async #quotation(
    line: Line,
    chat: Chat,
    remoteJid: string,
    { quoted }: MessageContext,
  ): Promise<WAMessage | undefined> {
    if (quoted === undefined) {
      return undefined;
    }
    const { kept, log, instanceId, recipients } = this.#options;
    const { id, text } = quoted;
    const known = await kept.find(line.library, id);
    if (known) {
      return { ...known, key: { ...known.key, remoteJid } };
    }
    const logged = await log.find(instanceId, id);
    const key = { remoteJid, fromMe: logged?.key.fromMe ?? false, id };
    const message = { conversation: text ?? '' };
    if (!chat.isGroup || key.fromMe) {
      return { key, message };
    }
    // Phones find a quoted group message by its author; without one they name the group as author.
    const author = logged?.authorJid;
    const [participant] = author ? await recipients.mentions(line, chat, [author], false) : [];
    return participant === undefined ? undefined : { key: { ...key, participant }, message };
  }
}

/** Baileys would fetch every address in a text, untrusted and outside the outbound guard. */
function withoutPreview(text: string): { text: string; linkPreview: null } {
  return { text, linkPreview: null };
}
