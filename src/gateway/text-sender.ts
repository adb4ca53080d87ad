/** Sends texts on an instance's behalf: invitations, and answers to rejected calls. */
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import { type MessageLog, ownKey, plainContext } from 'soundpost-chat/message-log';
import type { OutgoingText, Session } from 'soundpost-chat/transport';
import { handOver, inDoubt, interrupted, type OutgoingOrder, type SendRate, untilDue } from './outgoing.ts';

interface TextSenderOptions {
  readonly log: MessageLog;
  readonly rate: SendRate;
  readonly order: OutgoingOrder;
  readonly lease: Lease;
  /** Aborted when the gateway stops or loses its lease. */
  readonly closing: AbortSignal;
}

export class TextSender {
  readonly #options: TextSenderOptions;

  constructor(options: TextSenderOptions) {
    this.#options = options;
  }

  /**
   * Sends them one after the other. Throws rate_limited before the first if not all fit, and
   * timeout if it is unknown which were sent.
   * @param hand passes one to the network
   * @param gone aborted when the caller hangs up: nothing is sent, unless one is out already
   */
  async send<Text extends OutgoingText>(
    instance: Instance,
    session: Pick<Session, 'ownJid' | 'knowsNoIds'>,
    texts: readonly Text[],
    hand: (text: Text, signal: AbortSignal) => Promise<void>,
    gone?: AbortSignal,
  ): Promise<void> {
    const { log, rate, order, lease, closing } = this.#options;
    const ending = gone ? AbortSignal.any([closing, gone]) : closing;
    let isAnyOut = false;
    const turn = order.join(instance.id);
    try {
      const slot = await rate.reserve(instance, texts);
      await untilDue(turn, slot, ending).catch(async (error: unknown) => {
        await slot.release().catch(() => undefined);
        throw error;
      });
      ending.throwIfAborted();
      for (const text of texts) {
        const record = await log.intend({
          instanceId: instance.id,
          instanceName: instance.name,
          ownJid: session.ownJid,
          key: ownKey(text.chat, session.ownJid, text.messageId),
          timestampSeconds: Math.floor(Date.now() / 1000),
          message: { conversation: text.text },
          context: text.context ?? plainContext,
        });
        closing.throwIfAborted();
        lease.assert();
        isAnyOut = true;
        await handOver(log, session, record, () => hand(text, closing));
        await log.settle(record);
      }
    } catch (error) {
      // A retry would send again those that are out.
      if (isAnyOut && (closing.aborted || !lease.isValid)) {
        throw inDoubt(error);
      }
      throw ending.aborted && !isAnyOut ? interrupted(ending, error) : error;
    } finally {
      turn.leave();
    }
  }
}
