/** Messages to the network: each is the same one however often it is sent, and counts when the server has taken it. */
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

/** For what is sent outside a request that has a deadline. */
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
    // With length and waveform given, Baileys encrypts the file and leaves it as it is. Its types do not know that a
    // voice message has a waveform and may mention people; its code does.
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
      // The server took it in an attempt whose end nobody saw.
      return;
    }
    lease.assert();
    const taken = acknowledgements.wait(messageId);
    const sending = asked(
      'take the message',
      line.socket.sendMessage(chat.jid, content, { messageId, ...(quoted ? { quoted } : {}) }),
    );
    try {
      const sent = await untilAborted(sending, signal);
      await untilAborted(taken, signal);
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
      // A chat may have been filed under another of the person's addresses; a quotation of another chat would say so.
      return { ...known, key: { ...known.key, remoteJid: chat.jid } };
    }
    const logged = await log.find(instanceId, id);
    const key = { remoteJid: chat.jid, fromMe: logged?.key.fromMe ?? false, id };
    const message = { conversation: text ?? '' };
    if (!chat.isGroup || key.fromMe) {
      return { key, message };
    }
    // Phones look for a quoted message of a group by its author; without one they would name the group as that.
    const participant = logged?.authorJid;
    return participant === undefined ? undefined : { key: { ...key, participant }, message };
  }
}

/** Baileys would fetch every address in a text, whoever wrote it, and without the guard that outbound requests have. */
function withoutPreview(text: string): { text: string; linkPreview: null } {
  return { text, linkPreview: null };
}
