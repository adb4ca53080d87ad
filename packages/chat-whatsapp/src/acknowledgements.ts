/** Who waits for WhatsApp's server to take a message. Baileys' `sendMessage` resolves when the message left the socket. */
import { GatewayError } from 'soundpost-contract/gateway-errors';

interface Waiting {
  taken(): void;
  refused(error: GatewayError): void;
}

/** Codes of a negative acknowledgement whose meaning is known (Baileys `SERVER_ERROR_CODES`, `NACK_REASONS`). */
const refusals: Readonly<Record<string, string>> = {
  '463': 'WhatsApp does not let this account begin new chats at present',
  '475': 'WhatsApp has restricted whom this account may write to',
  '479': 'WhatsApp could not read the message',
};

export class Acknowledgements {
  readonly #waiting = new Map<string, Waiting>();

  /** To be called before the message is sent. Rejects with network_refused or not_connected. */
  wait(messageId: string): Promise<void> {
    const answer = new Promise<void>((resolve, reject) => {
      this.#waiting.set(messageId, { taken: resolve, refused: reject });
    });
    // A send that fails by itself never looks at this promise.
    answer.catch(() => undefined);
    return answer;
  }

  /** However the send ended. */
  forget(messageId: string): void {
    this.#waiting.delete(messageId);
  }

  taken(messageId: string): void {
    this.#waiting.get(messageId)?.taken();
  }

  /** Answers whether somebody was told; otherwise the message had been taken before. */
  refused(messageId: string, code: string | undefined): boolean {
    const waiting = this.#waiting.get(messageId);
    waiting?.refused(
      new GatewayError('network_refused', refusals[code ?? ''] ?? 'WhatsApp refused the message'),
    );
    return waiting !== undefined;
  }

  /** The connection ended: nobody will answer any more. */
  abandon(): void {
    for (const { refused } of this.#waiting.values()) {
      refused(new GatewayError('not_connected', 'the connection ended before WhatsApp took the message'));
    }
  }
}
