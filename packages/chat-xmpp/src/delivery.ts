/**
 * Delivers an own message over broken connections and repeated requests: exactly once if the server
 * has an archive.
 */
import { setImmediate } from 'node:timers/promises';
import { untilAborted } from 'soundpost-base/deadline';
import type { Chat } from 'soundpost-chat/transport';
import type { AddressBook } from './address-book.ts';
import type { Archive } from './archive.ts';
import { attribute, type Element } from './element.ts';
import { Bounced, conditionOf, isNothingThere, refusal } from './failure.ts';
import { bareOf, resourceOf } from './jid.ts';
import type { Memory } from './memory.ts';
import { ns } from './namespaces.ts';
import type { Rooms } from './rooms.ts';
import type { Stream } from './stream.ts';

interface DeliveryOptions {
  readonly stream: Stream;
  readonly archive: Archive;
  readonly memory: Memory;
  readonly rooms: Rooms;
  readonly addressBook: AddressBook;
  readonly ownJid: string;
}

interface Parcel {
  readonly chat: Chat;
  /** The stanza's id and origin id (XEP-0359); the archive is searched for it. */
  readonly messageId: string;
  /** Makes the stanza; not called if the network has the message already. */
  readonly stanza: () => Promise<Element>;
}

/** Tolerated difference between the clocks of server and gateway. */
const CLOCK_DIFFERENCE_MS = 10 * 60 * 1000;
const PAGE_MESSAGES = 100;

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #onBounce = new Map<string, (condition: string) => void>();

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** @returns `known`: the server had it before. Throws unknown_recipient or network_refused. */
  async deliver({ chat, messageId, stanza }: Parcel, signal: AbortSignal): Promise<'sent' | 'known'> {
    const { memory } = this.#options;
    const startedMs = Date.now();
    const earlierMs = await untilAborted(memory.beginSending(messageId), signal);
    if (earlierMs !== undefined && (await this.#wasTaken(chat, messageId, earlierMs))) {
      return 'known';
    }
    const made = await stanza();
    signal.throwIfAborted();
    const bounced = new Promise<never>((_resolve, reject) => {
      this.#onBounce.set(messageId, (condition) =>
        reject(new Bounced(condition, chat.isGroup || this.#options.addressBook.has(chat.jid))),
      );
    });
    // A bounce after the acknowledgement is reported as a status.
    bounced.catch(() => undefined);
    try {
      await Promise.race([bounced, this.#handOver(made, chat, messageId, earlierMs ?? startedMs, signal)]);
      return 'sent';
    } catch (error) {
      // A retry would find the bounced message in the archive.
      if (error instanceof Bounced) await memory.forgetSending(messageId);
      throw error;
    } finally {
      this.#onBounce.delete(messageId);
    }
  }

  /** @param stanza of type `error`; call this before its acknowledgement is handled */
  notice(stanza: Element): void {
    const conditions = stanza.getChild('error')?.getChildElements() ?? [];
    this.#onBounce.get(attribute(stanza, 'id') ?? '')?.(conditions[0]?.getName() ?? 'undefined-condition');
  }

  async #handOver(
    stanza: Element,
    chat: Chat,
    messageId: string,
    sinceMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { stream } = this.#options;
    for (let attempt = 1; ; attempt++) {
      await stream.untilOpen(signal);
      try {
        if (attempt === 1 || !(await this.#isArchived(chat, messageId, sinceMs))) {
          await stream.deliver(stanza, signal);
        }
        return;
      } catch (error) {
        signal.throwIfAborted();
        // An answer is final. A broken connection is not, even if it has not been noticed yet.
        const isFinal = conditionOf(error) !== undefined || stream.state === 'close';
        if (isFinal) throw refusal('number', error);
        await setImmediate();
      }
    }
  }

  async #wasTaken(chat: Chat, messageId: string, sinceMs: number): Promise<boolean> {
    return this.#isArchived(chat, messageId, sinceMs).catch((error: unknown) => {
      throw refusal('reading the archive', error);
    });
  }

  /** Without an archive, false: the origin id then lets the receiver recognise duplicates. */
  async #isArchived(chat: Chat, messageId: string, sinceMs: number): Promise<boolean> {
    const { archive } = this.#options;
    const where = chat.isGroup ? { room: chat.jid } : { with: chat.jid };
    const startMs = sinceMs - CLOCK_DIFFERENCE_MS;
    // A bounced message was not delivered, so each bounce cancels one attempt.
    let attempts = 0;
    try {
      for (let after = ''; ; ) {
        const page = await archive.page({ ...where, startMs, after, max: PAGE_MESSAGES });
        for (const { message } of page.messages) {
          attempts += this.#isThat(message, messageId) ? 1 : 0;
          attempts -= isBounceOf(message, messageId) ? 1 : 0;
        }
        if (page.complete || page.lastId === undefined) {
          return attempts > 0;
        }
        after = page.lastId;
      }
    } catch (error) {
      if (isNothingThere(error)) return false;
      throw error;
    }
  }

  #isThat(message: Element, messageId: string): boolean {
    const { ownJid, rooms } = this.#options;
    const from = attribute(message, 'from') ?? '';
    const room = rooms.joined(bareOf(from));
    const own = room === undefined ? bareOf(from) === ownJid : resourceOf(from) === room.nick;
    const originId = attribute(message.getChild('origin-id', ns.stanzaId), 'id');
    return own && (originId === messageId || attribute(message, 'id') === messageId);
  }
}

function isBounceOf(message: Element, messageId: string): boolean {
  return attribute(message, 'type') === 'error' && attribute(message, 'id') === messageId;
}
