/**
 * What one replica says to another about a request that it passes on, signed with a key that only replicas have. It tells the
 * receiver to pass it on no further, whose the request is, and under which id the log speaks of it. The caller's own key goes
 * along and is looked at again: a ticket opens nothing.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

export const TICKET_HEADER = 'soundpost-forwarded';

export interface Ticket {
  /** The caller's address, as the first replica saw it. */
  readonly address: string;
  readonly requestId: string;
}

/** What the signature binds the ticket to. */
export interface ForwardedRequest {
  readonly method: string;
  /** Path and query as they came. */
  readonly path: string;
}

/** As far as clocks of machines may differ, and as long as a ticket that was overheard is good for the same request. */
const TOLERANCE_MS = 5 * 60_000;
const LONGEST = 1024;

const Signed = z.object({ address: z.string(), requestId: z.string(), atMs: z.int() });

export class Tickets {
  /** As an object: of bytes one would be made with each ticket. */
  readonly #key: KeyObject;

  /** @param key the same in every replica */
  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  /** A value for the header. */
  issue(ticket: Ticket, request: ForwardedRequest): string {
    const text = Buffer.from(JSON.stringify({ ...ticket, atMs: Date.now() })).toString('base64url');
    return `${text}.${this.#sign(text, request).toString('base64url')}`;
  }

  /** Undefined for one that no replica has issued for this request just now. */
  read(value: string, request: ForwardedRequest): Ticket | undefined {
    const [text = '', signature = '', ...more] = value.split('.');
    const given = Buffer.from(signature, 'base64url');
    const right = this.#sign(text, request);
    if (
      value.length > LONGEST ||
      more.length > 0 ||
      given.length !== right.length ||
      !timingSafeEqual(given, right)
    ) {
      return undefined;
    }
    const { atMs, ...ticket } = Signed.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
    return Math.abs(Date.now() - atMs) > TOLERANCE_MS ? undefined : ticket;
  }

  #sign(text: string, { method, path }: ForwardedRequest): Buffer {
    return createHmac('sha256', this.#key).update(`${text}\n${method}\n${path}`).digest();
  }
}
