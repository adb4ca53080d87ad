/**
 * Operation 1, from a parsed request to the network's acceptance: find the recipient, take a place among what the instance
 * sends, prepare the voice note once, keep its encrypted copy, record the intent, show presence, send, settle.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { AudioMessage, SendAudioFields, SentMessage } from '../contract/gateway.ts';
import { GatewayError } from '../contract/gateway-errors.ts';
import type { Observer } from '../observe/metrics/observer.ts';
import { noTracing, type Tracing } from '../observe/tracing/tracing.ts';
import { parseAddress } from './address.ts';
import type { AudioInput } from './audio-input.ts';
import type { Instance } from './instances.ts';
import type { Lease } from './lease/lease.ts';
import type { MessageLog } from './message-log.ts';
import type { MessageRecord } from './message-record.ts';
import { inDoubt, interrupted, until, untilDue } from './outgoing.ts';
import type { Turn } from './outgoing-order.ts';
import type { SendRate, Slot } from './send-rate.ts';
import type { Sessions } from './sessions.ts';
import type { SecretHasher } from './tokens.ts';
import type { Chat, MessageContext, Session } from './transport.ts';
import { audioOf, messageContext, sentMessage } from './voice-message.ts';
import type { VoiceNotes } from './voice-notes.ts';

interface VoiceSenderOptions {
  readonly sessions: Sessions;
  readonly log: MessageLog;
  readonly notes: VoiceNotes;
  readonly rate: SendRate;
  readonly hasher: SecretHasher;
  readonly lease: Lease;
  /** Aborted when the gateway stops, or its lease is lost: what has not reached the network yet is given up. */
  readonly closing: AbortSignal;
  /** For preparing and sending together; waiting for its turn and the presence before it come on top. */
  readonly sendTimeoutMs: number;
  readonly observer?: Observer | undefined;
  readonly tracing?: Tracing | undefined;
}

interface VoiceRequest {
  readonly instance: Instance;
  readonly fields: SendAudioFields;
  readonly audio: AudioInput;
  readonly workspace: string;
  /** The caller's Idempotency-Key: the message's id follows from it. */
  readonly idempotencyKey: string | undefined;
  /** The request's place among those of the instance; whoever took it leaves it. */
  readonly turn: Turn;
}

/** What is left of the time for preparing and sending, and what ends it early. */
interface Budget {
  leftMs: number;
  readonly ending: AbortSignal;
}

/** A request whose recipient is known. */
interface Addressed {
  readonly session: Session;
  readonly chat: Chat;
  readonly context: MessageContext;
  readonly messageId: string;
}

interface Prepared {
  readonly record: MessageRecord;
  readonly audioMessage: AudioMessage;
  readonly file: string;
}

export class VoiceSender {
  readonly #options: VoiceSenderOptions;

  constructor(options: VoiceSenderOptions) {
    this.#options = options;
  }

  async send(request: VoiceRequest): Promise<SentMessage> {
    const { log, closing, sendTimeoutMs } = this.#options;
    const budget: Budget = { leftMs: sendTimeoutMs, ending: closing };
    const addressed = await this.#inTime(budget, (signal) => this.#address(request, signal));
    const earlier = await log.find(request.instance.id, addressed.messageId);
    if (earlier?.settled) {
      return sentMessage(earlier);
    }
    return this.#observed(request, () => this.#deliver(request, addressed, budget));
  }

  async #deliver(request: VoiceRequest, addressed: Addressed, budget: Budget): Promise<SentMessage> {
    const { log, rate, tracing = noTracing } = this.#options;
    const slot = await rate.reserve(request.instance, [addressed.messageId]);
    const prepared = await this.#beforeNetwork(slot, async () => {
      const made = await this.#inTime(budget, (signal) =>
        tracing.span('prepare voice note', {}, () => this.#prepare(request, addressed, signal)),
      );
      await this.#waitForNetwork(request, addressed, slot, budget.ending);
      return made;
    });
    const network = { 'soundpost.transport': request.instance.transport };
    const hand = (signal: AbortSignal) => this.#toNetwork(addressed, prepared, signal);
    await this.#inTime(budget, (signal) =>
      tracing.span('send to network', network, () => hand(signal), 'client'),
    );
    await log.settle(prepared.record);
    return sentMessage(prepared.record);
  }

  /** What is with the network when another process takes over may have arrived or not. */
  async #toNetwork(
    { session, messageId, chat, context }: Addressed,
    { file, audioMessage }: Prepared,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await session.sendVoice({ messageId, chat, file, content: audioMessage, context }, signal);
    } catch (error) {
      throw this.#options.lease.lost.aborted ? inDoubt(error) : error;
    }
  }

  async #observed<T>({ instance }: VoiceRequest, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const tell = (outcome: Parameters<Observer['messageSent']>[1]): void =>
      this.#options.observer?.messageSent(
        instance.transport,
        outcome,
        (performance.now() - startedAt) / 1000,
      );
    try {
      const made = await work();
      tell('sent');
      return made;
    } catch (error) {
      tell(error instanceof GatewayError ? error.code : 'internal_error');
      throw error;
    }
  }

  async #address(request: VoiceRequest, signal: AbortSignal): Promise<Addressed> {
    const { instance, fields } = request;
    const session = await this.#options.sessions.connected(instance, signal);
    return {
      session,
      chat: await session.resolve(parseAddress(fields.number, 'number'), 'number'),
      context: messageContext(fields),
      messageId: this.#messageId(request),
    };
  }

  /** The file to send and the record of it; a record that a crashed attempt left is the one that counts. */
  async #prepare(
    { instance, audio, workspace }: VoiceRequest,
    { session, chat, context, messageId }: Addressed,
    signal: AbortSignal,
  ): Promise<Prepared> {
    const { notes, log } = this.#options;
    const note = await notes.make(audio, workspace, signal);
    const record = await log.intend({
      instanceId: instance.id,
      instanceName: instance.name,
      ownJid: session.ownJid,
      key: { remoteJid: chat.jid, fromMe: true, id: messageId },
      timestampSeconds: Math.floor(Date.now() / 1000),
      message: { audioMessage: note.audioMessage },
      context,
    });
    return { record, file: note.file, audioMessage: audioOf(record) };
  }

  /** Shows the presence that the caller asked for, just before the message may go, and waits until it may. */
  async #waitForNetwork(
    { fields, turn }: VoiceRequest,
    { session, chat }: Addressed,
    slot: Slot,
    ending: AbortSignal,
  ): Promise<void> {
    const delayMs = fields.delay ?? 0;
    try {
      if (delayMs > 0) {
        await until(slot.atMs - delayMs, ending);
        await session.showPresence(chat, 'recording');
        await wait(delayMs, undefined, { signal: ending }).finally(() =>
          session.showPresence(chat, 'paused'),
        );
      }
      await untilDue(turn, slot, ending);
    } catch (error) {
      throw ending.aborted ? interrupted(ending, error) : error;
    }
  }

  /** What ends before the network has the message needs no slot. */
  async #beforeNetwork<T>(slot: Slot, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await slot.release().catch(() => undefined);
      throw error;
    }
  }

  async #inTime<T>(budget: Budget, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { ending } = budget;
    const startedAt = performance.now();
    const deadline = AbortSignal.timeout(Math.max(1, Math.floor(budget.leftMs)));
    try {
      return await work(AbortSignal.any([deadline, ending]));
    } catch (error) {
      if (error instanceof GatewayError) {
        throw error;
      }
      if (deadline.aborted) {
        throw new GatewayError('timeout', 'the audio could not be prepared and sent in time', {
          cause: error,
        });
      }
      throw ending.aborted ? interrupted(ending, error) : error;
    } finally {
      budget.leftMs -= performance.now() - startedAt;
    }
  }

  #messageId({ instance, idempotencyKey }: VoiceRequest): string {
    const id =
      idempotencyKey === undefined
        ? randomBytes(16).toString('hex')
        : this.#options.hasher.hash('message id', `${instance.id} ${idempotencyKey}`).slice(0, 32);
    return id.toUpperCase();
  }
}
