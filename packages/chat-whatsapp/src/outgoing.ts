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
import type { KeptMessages } from './kept-messages.ts';
import { asked } from './network-request.ts';
import type { Recipients } from './recipients.ts';

interface OutgoingOptions {
  readonly instanceId: string;
  readonly connection: Connection;
  readonly acknowledgements: Acknowledgements;
  readonly kept: KeptMessages;
  readonly recipients: Recipients;
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
    await this.#send(line, chat, messageId, voice, signal, await this.#quotation(line, chat, context));
  }

  async text({ chat, messageId, text, context }: OutgoingText, signal: AbortSignal): Promise<void> {
    const line = this.#options.connection.line();
    const { mentioned = [], mentionsEveryOne = false } = context ?? {};
    const mentions = await this.#options.recipients.mentions(line, chat, mentioned, mentionsEveryOne);
    const content = { ...withoutPreview(text), ...(mentions.length === 0 ? {} : { mentions }) };
    const quoted = context && (await this.#quotation(line, chat, context));
    await this.#send(line, chat, messageId, content, signal, quoted);
  }

  /** Throws not_editable. */
  async edit({ chat, key, text, kind }: MessageEdit): Promise<void> {
    if (kind === 'voice') {
      throw new GatewayError('not_editable', 'key.id: a voice message has no caption on WhatsApp');
    }
    using limit = deadline(SEND_TIMEOUT_MS);
    const edit = { remoteJid: chat.jid, fromMe: true, id: key.id };
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
    quoted?: WAMessage | undefined,
  ): Promise<void> {
    const { acknowledgements, kept, lease } = this.#options;
    if ((await kept.find(line.library, messageId)) !== undefined) {
      // The server accepted it in an attempt whose result was lost.
      return;
    }
    lease.assert();
    const accepted = acknowledgements.wait(messageId);
    const sending = asked(
      'take the message',
      line.socket.sendMessage(chat.jid, content, { messageId, ...(quoted ? { quoted } : {}) }),
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

  async #quotation(line: Line, chat: Chat, { quoted }: MessageContext): Promise<WAMessage | undefined> {
    if (quoted === undefined) {
      return undefined;
    }
    const { kept, log, instanceId } = this.#options;
    const { id, text } = quoted;
    const known = await kept.find(line.library, id);
    if (known) {
      // It may be stored under another address of the person, which would look like another chat.
      return { ...known, key: { ...known.key, remoteJid: chat.jid } };
    }
    const logged = await log.find(instanceId, id);
    const key = { remoteJid: chat.jid, fromMe: logged?.key.fromMe ?? false, id };
    const message = { conversation: text ?? '' };
    if (!chat.isGroup || key.fromMe) {
      return { key, message };
    }
    // Phones find a quoted group message by its author; without one they name the group as author.
    const participant = logged?.authorJid;
    return participant === undefined ? undefined : { key: { ...key, participant }, message };
  }
}

/** Baileys would fetch every address in a text, untrusted and outside the outbound guard. */
function withoutPreview(text: string): { text: string; linkPreview: null } {
  return { text, linkPreview: null };
}
