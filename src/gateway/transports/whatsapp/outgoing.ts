/** Messages to the network: each is the same one however often it is sent, and counts when the server has taken it. */
import { randomBytes } from 'node:crypto';
import type { AnyMessageContent, WAMessage } from 'baileys';
import { GatewayError } from '../../../contract/gateway-errors.ts';
import type { Lease } from '../../lease/lease.ts';
import type { Chat, MessageEdit, OutgoingText, OutgoingVoice } from '../../transport.ts';
import { untilAborted } from '../../until-aborted.ts';
import type { Acknowledgements } from './acknowledgements.ts';
import type { Connection, Line } from './connection.ts';
import type { KeptMessages } from './kept-messages.ts';
import { asked } from './network-request.ts';
import type { Recipients } from './recipients.ts';

interface OutgoingOptions {
  readonly connection: Connection;
  readonly acknowledgements: Acknowledgements;
  readonly kept: KeptMessages;
  readonly recipients: Recipients;
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
    const quoted = context.quoted && (await this.#quotation(line, chat, context.quoted));
    await this.#send(line, chat, messageId, voice, signal, quoted);
  }

  async text({ chat, messageId, text }: OutgoingText, signal: AbortSignal): Promise<void> {
    await this.#send(this.#options.connection.line(), chat, messageId, withoutPreview(text), signal);
  }

  /** Throws not_editable. */
  async edit({ chat, key, text, kind }: MessageEdit): Promise<void> {
    if (kind === 'voice') {
      throw new GatewayError('not_editable', 'key.id: a voice message has no caption on WhatsApp');
    }
    const edit = { remoteJid: chat.jid, fromMe: true, id: key.id };
    await this.#send(
      this.#options.connection.line(),
      chat,
      randomBytes(16).toString('hex').toUpperCase(),
      { ...withoutPreview(text), edit },
      AbortSignal.timeout(SEND_TIMEOUT_MS),
    );
  }

  async #send(
    line: Line,
    chat: Chat,
    messageId: string,
    content: AnyMessageContent,
    signal: AbortSignal,
    quoted?: WAMessage,
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

  async #quotation(
    line: Line,
    chat: Chat,
    { id, text }: { id: string; text: string | undefined },
  ): Promise<WAMessage> {
    const known = await this.#options.kept.find(line.library, id);
    // A chat may have been filed under another of the person's addresses; a quotation of another chat would say so.
    return known
      ? { ...known, key: { ...known.key, remoteJid: chat.jid } }
      : { key: { remoteJid: chat.jid, fromMe: false, id }, message: { conversation: text ?? '' } };
  }
}

/** Baileys would fetch every address in a text, whoever wrote it, and without the guard that outbound requests have. */
function withoutPreview(text: string): { text: string; linkPreview: null } {
  return { text, linkPreview: null };
}
