/**
 * Takes a message from parsed request to acceptance by the network: find the recipient, queue it,
 * prepare its voice note, store the copy, record the intent, show presence, send, settle.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { deadline, within } from 'soundpost-base/deadline';
import { parseAddress } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import { type MessageLog, type MessageRecord, ownKey } from 'soundpost-chat/message-log';
import type { SecretHasher } from 'soundpost-chat/tokens';
import { type Chat, type MessageContext, type Session, UnsupportedOperation } from 'soundpost-chat/transport';
import type { MessageContent, SendFields, SentMessage, SentText } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import { untilTaken } from 'soundpost-kit/redis/until-taken';
import {
  CallerGone,
  handOver,
  inDoubt,
  interrupted,
  mayBeSent,
  type SendRate,
  type Turn,
  until,
  untilDue,
} from './outgoing.ts';
import type { Sessions } from './sessions.ts';
import { audioOf, messageContext, sentText, sentVoice } from './voice-message.ts';
import type { AudioInput, VoiceNotes } from './voice-notes.ts';

type Slot = Awaited<ReturnType<SendRate['reserve']>>;

interface MessageSenderOptions {
  readonly sessions: Sessions;
  readonly log: MessageLog;
  readonly notes: VoiceNotes;
  readonly rate: SendRate;
  readonly hasher: SecretHasher;
  readonly lease: Lease;
  /** Aborted when the gateway stops or loses its lease: unsent messages are abandoned. */
  readonly closing: AbortSignal;
  /** For preparing and sending; not for waiting in the queue or showing presence. */
  readonly sendTimeoutMs: number;
  readonly observer?: Observer | undefined;
  readonly tracing?: Tracing | undefined;
}

interface SendRequest<Content> {
  readonly instance: Instance;
  readonly fields: SendFields;
  readonly content: Content;
  /** The caller's Idempotency-Key, from which the message's id derives. */
  readonly idempotencyKey: string | undefined;
  /** The request's place in the instance's order; its creator calls `leave`. */
  readonly turn: Turn;
  /** Aborted when the caller hangs up: then the message is dropped, unless the network has it. */
  readonly gone: AbortSignal;
}

/** Remaining time for preparing and sending, and what aborts it. */
interface Budget {
  leftMs: number;
  /** Until the message is handed to the network also the caller who has left. */
  ending: AbortSignal;
}

/** A request with a known recipient. */
interface Addressed {
  readonly session: Session;
  readonly chat: Chat;
  readonly context: MessageContext;
  readonly messageId: string;
}

/** The caller's audio, and a folder to process it in. */
interface Sound {
  readonly audio: AudioInput;
  readonly workspace: string;
  /** Whether any mono Ogg Opus is sent unchanged. */
  readonly keepsOpus: boolean;
}

interface Prepared {
  readonly record: MessageRecord;
  readonly hand: (signal: AbortSignal) => Promise<void>;
}

/** The differences between voice messages and texts. */
interface Kind {
  readonly kind: 'voice' | 'text';
  /** The presence shown before it. */
  readonly presence: 'recording' | 'composing';
  prepare(addressed: Addressed, signal: AbortSignal): Promise<Prepared>;
}

const SETTLED_WITHIN_MS = 500;

export class MessageSender {
  readonly #options: MessageSenderOptions;

  constructor(options: MessageSenderOptions) {
    this.#options = options;
  }

  async voice(request: SendRequest<Sound>): Promise<SentMessage> {
    const record = await this.#send(request, {
      kind: 'voice',
      presence: 'recording',
      prepare: async (addressed, signal) => {
        const { session, chat, context, messageId } = addressed;
        const note = await this.#options.notes.make(request.content, signal);
        const record = await this.#intend(request, addressed, { audioMessage: note.audioMessage });
        const { file, durationMs } = note;
        const voice = { messageId, chat, file, durationMs, content: audioOf(record), context };
        return { record, hand: (ending) => session.sendVoice(voice, ending) };
      },
    });
    return sentVoice(record);
  }

  /** Throws unsupported. */
  async text(request: SendRequest<string>): Promise<SentText> {
    const record = await this.#send(request, {
      kind: 'text',
      presence: 'composing',
      prepare: async (addressed) => {
        const { session, chat, context, messageId } = addressed;
        if (session.sendText === undefined) {
          throw new UnsupportedOperation('sending text', request.instance.transport);
        }
        const record = await this.#intend(request, addressed, { conversation: request.content });
        const text = { messageId, chat, text: request.content, context };
        return { record, hand: async (ending) => session.sendText?.(text, ending) };
      },
    });
    return sentText(record);
  }

  async #send(request: SendRequest<unknown>, kind: Kind): Promise<MessageRecord> {
    const { log, closing, sendTimeoutMs } = this.#options;
    const ending = AbortSignal.any([closing, request.gone]);
    const budget: Budget = { leftMs: sendTimeoutMs, ending };
    const addressed = await this.#inTime('looking the number up', budget, (signal) =>
      this.#address(request, kind, signal),
    );
    const earlier = await log.find(request.instance.id, addressed.messageId);
    if (earlier?.settled) {
      return earlier;
    }
    if (earlier?.marked) throw mayBeSent();
    return this.#observed(request, () => this.#deliver(request, kind, addressed, budget));
  }

  async #deliver(
    request: SendRequest<unknown>,
    kind: Kind,
    addressed: Addressed,
    budget: Budget,
  ): Promise<MessageRecord> {
    const { log, rate, closing, tracing = noTracing } = this.#options;
    const slot = await rate.reserve(request.instance, [addressed]);
    const { record, hand } = await this.#beforeNetwork(slot, async () => {
      const made = await this.#inTime('preparing the message', budget, (signal) =>
        tracing.span(kind.kind === 'voice' ? 'prepare voice note' : 'prepare text', {}, () =>
          kind.prepare(addressed, signal),
        ),
      );
      await this.#waitForNetwork(request, kind.presence, addressed, slot, budget.ending);
      request.gone.throwIfAborted();
      return made;
    });
    // From here on nobody knows whether the network has it.
    budget.ending = closing;
    const network = { 'soundpost.transport': request.instance.transport };
    await this.#inTime('handing the message to the network', budget, (signal) =>
      tracing.span(
        'send to network',
        network,
        () => this.#toNetwork(() => handOver(log, addressed.session, record, () => hand(signal))),
        'client',
      ),
    );
    // It is sent: the answer no longer depends on the log.
    const settling = untilTaken(() => log.settle(record));
    await within(SETTLED_WITHIN_MS, () => settling).catch(() => undefined);
    return record;
  }

  /** When another process takes over during a send, its outcome is unknown. */
  async #toNetwork(hand: () => Promise<void>): Promise<void> {
    try {
      await hand();
    } catch (error) {
      throw this.#options.lease.lost.aborted ? inDoubt(error) : error;
    }
  }

  async #observed<T>({ instance }: SendRequest<unknown>, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const observe = (outcome: Parameters<Observer['messageSent']>[1]): void =>
      this.#options.observer?.messageSent(
        instance.transport,
        outcome,
        (performance.now() - startedAt) / 1000,
      );
    try {
      const made = await work();
      observe('sent');
      return made;
    } catch (error) {
      if (error instanceof CallerGone) observe('caller_gone');
      else observe(error instanceof GatewayError ? error.code : 'internal_error');
      throw error;
    }
  }

  async #address(request: SendRequest<unknown>, { kind }: Kind, signal: AbortSignal): Promise<Addressed> {
    const { instance, fields } = request;
    const session = await this.#options.sessions.connected(instance, signal);
    return {
      session,
      chat: await session.resolve(parseAddress(fields.number, 'number'), 'number'),
      context: this.#context(instance, session, fields),
      messageId: this.#messageId(request, kind),
    };
  }

  /** Throws unsupported for what is asked for and the network lacks. */
  #context({ transport }: Instance, { lacks = [] }: Session, fields: SendFields): MessageContext {
    const context = messageContext(fields);
    const isAsked = { mentioned: context.mentioned.length > 0, mentionsEveryOne: context.mentionsEveryOne };
    const lacking = lacks.find((field) => isAsked[field]);
    if (lacking !== undefined) throw new UnsupportedOperation(lacking, transport);
    return context;
  }

  /** The record of a message to send; a crashed attempt's record takes precedence. */
  #intend(
    { instance }: SendRequest<unknown>,
    { session, chat, context, messageId }: Addressed,
    message: MessageContent,
  ): Promise<MessageRecord> {
    return this.#options.log.intend({
      instanceId: instance.id,
      instanceName: instance.name,
      ownJid: session.ownJid,
      key: ownKey(chat, session.ownJid, messageId),
      timestampSeconds: Math.floor(Date.now() / 1000),
      message,
      context,
    });
  }

  /** Shows the requested presence right before the message is due, and waits until then. */
  async #waitForNetwork(
    { fields, turn }: SendRequest<unknown>,
    presence: Kind['presence'],
    { session, chat }: Addressed,
    slot: Slot,
    ending: AbortSignal,
  ): Promise<void> {
    const delayMs = fields.delay ?? 0;
    try {
      if (delayMs > 0) {
        await until(slot.atMs - delayMs, ending);
        await session.showPresence(chat, presence);
        await wait(delayMs, undefined, { signal: ending }).finally(() =>
          session.showPresence(chat, 'paused'),
        );
      }
      await untilDue(turn, slot, ending);
    } catch (error) {
      throw ending.aborted ? interrupted(ending, error) : error;
    }
  }

  /** If it ends before reaching the network, its slot is released. */
  async #beforeNetwork<T>(slot: Slot, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await slot.release().catch(() => undefined);
      throw error;
    }
  }

  /** @param what names the step in a timeout's message */
  async #inTime<T>(what: string, budget: Budget, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { ending } = budget;
    // Time may have run out within the previous step: nothing must reach the network after it.
    if (budget.leftMs <= 0) throw new GatewayError('timeout', `${what} took too long`);
    const startedAt = performance.now();
    using limit = deadline(budget.leftMs, { signal: ending });
    try {
      return await work(limit.signal);
    } catch (error) {
      if (error instanceof GatewayError) {
        throw error;
      }
      if (limit.signal.aborted && limit.signal.reason !== ending.reason) {
        throw new GatewayError('timeout', `${what} took too long`, { cause: error });
      }
      throw ending.aborted ? interrupted(ending, error) : error;
    } finally {
      budget.leftMs -= performance.now() - startedAt;
    }
  }

  #messageId({ instance, idempotencyKey }: SendRequest<unknown>, kind: Kind['kind']): string {
    const id =
      idempotencyKey === undefined
        ? randomBytes(16).toString('hex')
        : this.#options.hasher
            .hash(kind === 'voice' ? 'message id' : 'text id', `${instance.id} ${idempotencyKey}`)
            .slice(0, 32);
    return id.toUpperCase();
  }
}
