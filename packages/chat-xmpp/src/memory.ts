/** State in Redis that the transport needs after a restart. */

import { type Lease, loadFencedScript } from 'soundpost-chat/lease/lease';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';

/** As long as a request may be repeated (decisions A6 keeps Idempotency-Keys for 24 h). */
const ATTEMPT_SECONDS = 48 * 60 * 60;
const ROOM_ID_SECONDS = 30 * 24 * 60 * 60;

const beginScript = loadFencedScript(new URL('./lua/attempt-begin.lua', import.meta.url));
const forgetScript = loadFencedScript(new URL('./lua/attempt-forget.lua', import.meta.url));
const setScript = loadFencedScript(new URL('./lua/last-seen-set.lua', import.meta.url));

export class Memory {
  readonly #redis: Redis;
  readonly #instanceId: string;
  readonly #lease: Lease;

  constructor(redis: Redis, instanceId: string, lease: Lease) {
    this.#redis = redis;
    this.#instanceId = instanceId;
    this.#lease = lease;
  }

  /** Records a send attempt. @returns when it was recorded before, ms since 1970 */
  async beginSending(messageId: string): Promise<number | undefined> {
    const earlier = await beginScript.run(
      this.#redis,
      this.#lease,
      [this.#key('attempt', messageId)],
      [redisNow(), ATTEMPT_SECONDS],
    );
    return earlier === null ? undefined : Number(earlier);
  }

  async forgetSending(messageId: string): Promise<void> {
    await forgetScript.run(this.#redis, this.#lease, [this.#key('attempt', messageId)], []);
  }

  /** Archive id of the last handled message. */
  lastSeen(): Promise<string | null> {
    return this.#redis.get(this.#key('seen'));
  }

  async setLastSeen(archiveId: string): Promise<void> {
    await setScript.run(this.#redis, this.#lease, [this.#key('seen')], [archiveId]);
  }

  /** A message's id in its room, for replies and markers (XEP-0461 §3.1, XEP-0333 §4.1). */
  async roomId(messageId: string): Promise<string | undefined> {
    return (await this.#redis.get(this.#key('room-id', messageId))) ?? undefined;
  }

  async setRoomId(messageId: string, roomId: string): Promise<void> {
    await this.#redis.set(this.#key('room-id', messageId), roomId, 'EX', ROOM_ID_SECONDS);
  }

  /** When the last message of a room arrived, ms since 1970. */
  async roomSeen(room: string): Promise<number | undefined> {
    const atMs = await this.#redis.hget(this.#key('rooms'), room);
    return atMs === null ? undefined : Number(atMs);
  }

  async setRoomSeen(room: string, atMs: number): Promise<void> {
    await this.#redis.hset(this.#key('rooms'), room, atMs);
  }

  /** The room of the invitation with this code. */
  async invitedTo(code: string): Promise<string | undefined> {
    return (await this.#redis.hget(this.#key('invites'), code)) ?? undefined;
  }

  async setInvitedTo(code: string, room: string): Promise<void> {
    await this.#redis.hset(this.#key('invites'), code, room);
  }

  /** Deletes the keys that do not expire. */
  async clear(): Promise<void> {
    await this.#redis.unlink(this.#key('seen'), this.#key('rooms'), this.#key('invites'));
  }

  #key(...parts: string[]): string {
    return gatewayKey('xmpp', this.#instanceId, ...parts);
  }
}
