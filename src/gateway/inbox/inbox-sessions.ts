/**
 * Who may look into the voice inbox: whoever has the gateway's key or an instance's token, or came by a one-time link.
 * The link's code is good for 10 minutes and one use, and is exchanged for a session that opens the inbox only.
 */

import { gatewayKey } from 'soundpost-chat/redis-keys';
import { randomToken, type SecretHasher } from 'soundpost-chat/tokens';
import type { Redis } from 'soundpost-kit/redis/connection';

const CODE_SECONDS = 10 * 60;
const SESSION_SECONDS = 12 * 60 * 60;

export class InboxSessions {
  readonly #redis: Redis;
  readonly #hasher: SecretHasher;

  constructor(redis: Redis, hasher: SecretHasher) {
    this.#redis = redis;
    this.#hasher = hasher;
  }

  /** A code for `/inbox?code=…`; only its hash is kept. */
  async createCode(): Promise<string> {
    const code = randomToken();
    await this.#redis.set(this.#codeKey(code), '1', 'EX', CODE_SECONDS);
    return code;
  }

  /** The session for a code, or undefined when the code is unknown, used or too old. */
  async redeem(code: string): Promise<string | undefined> {
    // GETDEL: of two who come with the same code one gets the session.
    if ((await this.#redis.getdel(this.#codeKey(code))) === null) {
      return undefined;
    }
    const session = randomToken();
    await this.#redis.set(this.#sessionKey(session), '1', 'EX', SESSION_SECONDS);
    return session;
  }

  async isOpen(session: string): Promise<boolean> {
    return (await this.#redis.exists(this.#sessionKey(session))) === 1;
  }

  #codeKey(code: string): string {
    return gatewayKey('inbox-code', this.#hasher.hash('inbox code', code));
  }

  #sessionKey(session: string): string {
    return gatewayKey('inbox-session', this.#hasher.hash('inbox session', session));
  }
}
