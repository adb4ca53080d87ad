/** Texts that the gateway sends on an instance's behalf: invitations, and what is said after a rejected call. */
import type { Instance } from './instances.ts';
import type { MessageLog } from './message-log.ts';
import { plainContext } from './message-record.ts';
import { inDoubt, interrupted, untilDue } from './outgoing.ts';
import type { OutgoingOrder } from './outgoing-order.ts';
import type { SendRate } from './send-rate.ts';
import type { Sessions } from './sessions.ts';
import type { OutgoingText, Session } from './transport.ts';

export interface TextSenderOptions {
  readonly log: MessageLog;
  readonly rate: SendRate;
  readonly order: OutgoingOrder;
  readonly sessions: Pick<Sessions, 'holdOf'>;
  /** Aborted when the gateway stops. */
  readonly closing: AbortSignal;
}

export class TextSender {
  readonly #options: TextSenderOptions;

  constructor(options: TextSenderOptions) {
    this.#options = options;
  }

  /**
   * Sends them one after the other. Throws rate_limited before the first when there is no room for all, and timeout when it is
   * not known which of them were sent.
   * @param hand gives one to the network
   */
  async send<Text extends OutgoingText>(
    instance: Instance,
    { ownJid }: Pick<Session, 'ownJid'>,
    texts: readonly Text[],
    hand: (text: Text, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { log, rate, order, sessions, closing } = this.#options;
    const hold = sessions.holdOf(instance);
    const ending = AbortSignal.any([closing, hold.lost]);
    let isAnyOut = false;
    const turn = order.join(instance.id);
    try {
      const slot = await rate.reserve(
        instance,
        texts.map(({ messageId }) => messageId),
      );
      await untilDue(turn, slot, ending);
      for (const text of texts) {
        const record = await log.intend({
          instanceId: instance.id,
          instanceName: instance.name,
          ownJid,
          key: { remoteJid: text.chat.jid, fromMe: true, id: text.messageId },
          timestampSeconds: Math.floor(Date.now() / 1000),
          message: { conversation: text.text },
          context: plainContext,
        });
        ending.throwIfAborted();
        hold.assert();
        isAnyOut = true;
        await hand(text, ending);
        await log.settle(record);
      }
    } catch (error) {
      // Who sent them again would send twice what is out.
      if (isAnyOut && (ending.aborted || !hold.isGood)) {
        throw inDoubt(error);
      }
      throw ending.aborted ? interrupted(ending, error) : error;
    } finally {
      turn.leave();
    }
  }
}
