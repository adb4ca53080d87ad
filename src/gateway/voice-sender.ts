/**
 * Operation 1, from a parsed request to the network's acceptance: find the recipient, prepare the voice note once,
 * keep its encrypted copy, record the intent, show presence, send, settle.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { SendAudioFields, SentMessage } from '../contract/gateway.ts';
import { GatewayError } from '../contract/gateway-errors.ts';
import { MediaFailure } from '../media/failure.ts';
import type { MediaTools } from '../media/run.ts';
import { prepareVoiceNote } from '../media/voice-note.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { parseAddress } from './address.ts';
import { type AudioInput, materialize } from './audio-input.ts';
import type { Instance } from './instances.ts';
import type { MediaStore } from './media-store.ts';
import type { MessageLog, MessageRecord } from './message-log.ts';
import type { Sessions } from './sessions.ts';
import type { SecretHasher } from './tokens.ts';
import type { Chat, MessageContext, Session } from './transport.ts';

export interface VoiceSenderOptions {
  readonly sessions: Sessions;
  readonly log: MessageLog;
  readonly media: MediaStore;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
  readonly hasher: SecretHasher;
  /** Aborted when the gateway stops: what has not reached the network yet is given up. */
  readonly closing: AbortSignal;
  /** For preparing and sending together; the presence before it comes on top (decisions B: "at most delay + 30 s"). */
  readonly sendTimeoutMs: number;
}

export interface VoiceRequest {
  readonly instance: Instance;
  readonly fields: SendAudioFields;
  readonly audio: AudioInput;
  readonly workspace: string;
  /** The caller's Idempotency-Key: the message's id follows from it. */
  readonly idempotencyKey: string | undefined;
}

export class VoiceSender {
  readonly #options: VoiceSenderOptions;

  constructor(options: VoiceSenderOptions) {
    this.#options = options;
  }

  async send(request: VoiceRequest): Promise<SentMessage> {
    const { sessions, log, closing, sendTimeoutMs } = this.#options;
    const { instance, fields } = request;
    const delayMs = fields.delay ?? 0;
    const deadline = AbortSignal.timeout(sendTimeoutMs + delayMs);
    const signal = AbortSignal.any([deadline, closing]);
    try {
      const session = await sessions.connected(instance);
      const chat = await session.resolve(parseAddress(fields.number, 'number'), 'number');
      const context = messageContext(fields);
      const messageId = this.#messageId(request);
      const earlier = await log.find(instance.id, messageId);
      if (earlier?.settled) {
        return answer(earlier);
      }
      const { record, file } = await this.#prepare(request, session, chat, context, messageId, signal);
      if (delayMs > 0) {
        await session.showPresence(chat, 'recording');
        await wait(delayMs, undefined, { signal }).finally(() => session.showPresence(chat, 'paused'));
      }
      await session.sendVoice(
        { messageId, chat, file, content: record.message.audioMessage, context },
        signal,
      );
      await log.settle(record);
      return answer(record);
    } catch (error) {
      throw this.#explained(error, deadline);
    }
  }

  /** The file to send and the record of it; a record that a crashed attempt left is the one that counts. */
  async #prepare(
    { instance, audio, workspace }: VoiceRequest,
    session: Session,
    chat: Chat,
    context: MessageContext,
    messageId: string,
    signal: AbortSignal,
  ): Promise<{ record: MessageRecord; file: string }> {
    const { outbound, tools, media, log } = this.#options;
    const input = await materialize(audio, outbound, workspace, signal);
    const output = join(workspace, 'voice.ogg');
    const note = await prepareVoiceNote({ tools, input, output, workspace, signal });
    const audioMessage = await media.keep(note, workspace, signal);
    const record = await log.intend({
      instanceId: instance.id,
      instanceName: instance.name,
      ownJid: session.ownJid,
      key: { remoteJid: chat.jid, fromMe: true, id: messageId },
      timestampSeconds: Math.floor(Date.now() / 1000),
      message: { audioMessage },
      context,
    });
    return { record, file: note.path };
  }

  #messageId({ instance, idempotencyKey }: VoiceRequest): string {
    const id =
      idempotencyKey === undefined
        ? randomBytes(16).toString('hex')
        : this.#options.hasher.hash('message id', `${instance.id} ${idempotencyKey}`).slice(0, 32);
    return id.toUpperCase();
  }

  #explained(error: unknown, deadline: AbortSignal): unknown {
    if (error instanceof GatewayError) {
      return error;
    }
    if (error instanceof MediaFailure) {
      return new GatewayError('not_audio', `audio: ${error.details}`, { cause: error });
    }
    if (deadline.aborted) {
      return new GatewayError('timeout', 'the audio could not be prepared and sent in time', {
        cause: error,
      });
    }
    if (this.#options.closing.aborted) {
      return new GatewayError('service_unavailable', 'the gateway is stopping; send the request again', {
        retryAfterSeconds: 5,
        cause: error,
      });
    }
    return error;
  }
}

/** Throws bad_request naming every mention that is no address. */
function messageContext(fields: SendAudioFields): MessageContext {
  const { quoted } = fields;
  return {
    quoted: quoted ? { id: quoted.key.id, text: quoted.message?.conversation } : undefined,
    mentioned: (fields.mentioned ?? []).map((text, index) => parseAddress(text, `mentioned[${index}]`).text),
    mentionsEveryOne: fields.mentionsEveryOne ?? false,
    linkPreview: fields.linkPreview ?? false,
  };
}

function answer({ key, message, timestampSeconds }: MessageRecord): SentMessage {
  return { key, message, messageTimestamp: String(timestampSeconds), status: 'PENDING' };
}
