/**
 * The people and groups of an instance by our own records, for networks that list none: learned
 * from messages in and out.
 */
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { EDITION, readHash, unlessUnreadable } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { gatewayKey } from './redis-keys.ts';
import type { Contact } from './transport.ts';

/** A Redis hash, so that writers of different fields do not undo one another. */
const KnownChat = z.object({
  name: z.string().optional(),
  isGroup: z.stringbool().optional(),
  blocked: z.stringbool().optional(),
  /** When the last message came in, ms since 1970. */
  heardAtMs: z.coerce.number().optional(),
  /** Id of that message, on networks whose read receipts name it. */
  lastInId: z.string().optional(),
  /** The group's invitation, as the network last answered it. */
  inviteUrl: z.string().optional(),
  /** Where the chat is now, on networks that move groups. */
  movedTo: z.string().optional(),
});
export type KnownChat = z.infer<typeof KnownChat>;

export class ChatBook {
  readonly #redis: Redis;
  readonly #instanceId: string;
  /** JIDs of all chats. */
  readonly #all: string;

  constructor(redis: Redis, instanceId: string) {
    this.#redis = redis;
    this.#instanceId = instanceId;
    this.#all = gatewayKey('book', instanceId);
  }

  /** Undefined for a chat that no message came from or went to, or that cannot be read. */
  async find(jid: string): Promise<KnownChat | undefined> {
    return unlessUnreadable(
      () => readHash(this.#redis, this.#key(jid), KnownChat),
      () => undefined,
    );
  }

  /** Adds what is known now; an absent field keeps its value, an empty name is none. */
  async learn(jid: string, news: KnownChat): Promise<void> {
    const fields = Object.entries(news).flatMap(([field, value]) =>
      value === undefined || value === '' ? [] : [field, String(value)],
    );
    await this.#redis
      .multi()
      .sadd(this.#all, jid)
      .hset(this.#key(jid), 'version', EDITION, ...fields)
      .exec();
  }

  /** A message came in: Redis' clock says when. */
  heard(jid: string, news: Omit<KnownChat, 'heardAtMs'>): Promise<void> {
    return this.learn(jid, { ...news, heardAtMs: redisNow() });
  }

  /** By name; a person without one is named by number. */
  async contacts(): Promise<Contact[]> {
    const jids = await this.#redis.smembers(this.#all);
    const known = await Promise.all(jids.map(async (jid) => ({ jid, ...(await this.find(jid)) })));
    return known
      .filter(({ movedTo }) => movedTo === undefined)
      .map(({ jid, name, isGroup = false, blocked = false }) => ({
        jid,
        name: name ?? jid.slice(0, jid.indexOf('@')),
        isGroup,
        isSaved: false,
        blocked,
      }))
      .toSorted((a, b) => a.name.localeCompare(b.name) || a.jid.localeCompare(b.jid));
  }

  /** The instance is no longer in the chat. */
  async forget(jid: string): Promise<void> {
    await this.#redis.multi().srem(this.#all, jid).unlink(this.#key(jid)).exec();
  }

  /** Removes it with its instance. */
  async erase(): Promise<void> {
    const jids = await this.#redis.smembers(this.#all);
    await this.#redis.unlink(this.#all, ...jids.map((jid) => this.#key(jid)));
  }

  #key(jid: string): string {
    return gatewayKey('book', this.#instanceId, jid);
  }
}
