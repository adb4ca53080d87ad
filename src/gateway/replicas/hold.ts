/** The right to act for an instance. It ends when the replica's lease may have run out, whether anybody noticed or not. */
import { GatewayError } from '../../contract/gateway-errors.ts';

export interface HoldOptions {
  /** An instance's id, or a duty. */
  readonly what: string;
  /** `<fencing token> <replica id>` as Redis has it. */
  readonly holder: string;
  /** Whether the lease of the replica lasts for certain. */
  readonly isValid: () => boolean;
}

export class Hold {
  readonly what: string;
  readonly holder: string;
  readonly #isValid: () => boolean;
  readonly #lost = new AbortController();

  constructor({ what, holder, isValid }: HoldOptions) {
    this.what = what;
    this.holder = holder;
    this.#isValid = isValid;
  }

  /** Aborted with a GatewayError once another replica may act instead. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get replicaId(): string {
    return this.holder.slice(this.holder.indexOf(' ') + 1);
  }

  get isGood(): boolean {
    return !this.#lost.signal.aborted && this.#isValid();
  }

  /**
   * To be called right before anything leaves for the network: it asks no one, so nothing comes between.
   * Throws service_unavailable.
   */
  assert(): void {
    if (!this.isGood) {
      throw moved();
    }
  }

  lose(): void {
    this.#lost.abort(moved());
  }
}

/** What callers see of an instance that changes hands: the request was not taken. */
export function moved(): GatewayError {
  return new GatewayError(
    'service_unavailable',
    'the instance is moving to another process of the gateway; send the request again',
    { retryAfterSeconds: 1 },
  );
}
