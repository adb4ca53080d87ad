/**
 * The disappearing timer of chats with one person; a group's is in its metadata. WhatsApp tells it
 * when it changes and with the history, and people's messages carry it.
 */
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Identities } from './identities.ts';

export class Timers {
  readonly #redis: Redis;
  readonly #identities: Identities;
  /** `<set at, s since 1970> <timer, s>` by JID. */
  readonly #hash: string;

  constructor(redis: Redis, identities: Identities, instanceId: string) {
    this.#redis = redis;
    this.#identities = identities;
    this.#hash = gatewayKey('whatsapp', instanceId, 'timers');
  }

  /**
   * A late message must not bring an old timer back.
   * @param seconds 0: off
   * @param atSeconds WhatsApp's time, since 1970
   */
  async learn(jid: string, seconds: number, atSeconds: number): Promise<void> {
    const [shown = jid, ...others] = await this.#identities.addressesOf(jid);
    const known = await this.#newest([shown, ...others]);
    if (Number.isSafeInteger(seconds) && seconds >= 0 && atSeconds >= (known?.atSeconds ?? 0)) {
      await this.#redis.hset(this.#hash, shown, `${atSeconds} ${seconds}`);
    }
  }

  /** Seconds; 0: off. */
  async of(jid: string): Promise<number> {
    return (await this.#newest(await this.#identities.addressesOf(jid)))?.seconds ?? 0;
  }

  async erase(): Promise<void> {
    await this.#redis.unlink(this.#hash);
  }

  async #newest(jids: readonly string[]): Promise<{ atSeconds: number; seconds: number } | undefined> {
    const kept = await this.#redis.hmget(this.#hash, ...jids);
    return kept
      .flatMap((text) => {
        const [atSeconds, seconds] = (text ?? '').split(' ').map(Number);
        return atSeconds === undefined || seconds === undefined ? [] : { atSeconds, seconds };
      })
      .toSorted((a, b) => b.atSeconds - a.atSeconds)[0];
  }
}
