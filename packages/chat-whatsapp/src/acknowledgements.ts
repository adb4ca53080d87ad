/** Sends that await the server: Baileys' `sendMessage` resolves once a message left the socket. */
import { GatewayError } from 'soundpost-contract/gateway-errors';

interface Waiting {
  accepted(): void;
  refused(error: GatewayError): void;
}

/** Known codes of a negative acknowledgement (Baileys `SERVER_ERROR_CODES`, `NACK_REASONS`). */
const refusals: Readonly<Record<string, string>> = {
  '463': 'WhatsApp is limiting whom this account may message (463)',
  '475': 'WhatsApp has restricted whom this account may write to',
  '479': 'WhatsApp could not read the message',
};

export class Acknowledgements {
  readonly #waiting = new Map<string, Waiting>();

  /** Call this before sending. Rejects with network_refused or not_connected. */
  wait(messageId: string): Promise<void> {
    const answer = new Promise<void>((resolve, reject) => {
      this.#waiting.set(messageId, { accepted: resolve, refused: reject });
    });
    // If the send itself fails, nothing awaits this promise.
    answer.catch(() => undefined);
    return answer;
  }

  /** Call this however the send ended. */
  forget(messageId: string): void {
    this.#waiting.delete(messageId);
  }

  accepted(messageId: string): void {
    this.#waiting.get(messageId)?.accepted();
  }

  /** @returns whether a send was waiting; otherwise the message had been accepted before */
  refused(messageId: string, code: string | undefined): boolean {
    const waiting = this.#waiting.get(messageId);
    waiting?.refused(
      new GatewayError('network_refused', refusals[code ?? ''] ?? 'WhatsApp refused the message'),
    );
    return waiting !== undefined;
  }

  /** The connection ended, so no more answers arrive. */
  abandon(): void {
    for (const { refused } of this.#waiting.values()) {
      refused(new GatewayError('not_connected', 'the connection ended before WhatsApp accepted the message'));
    }
  }
}
