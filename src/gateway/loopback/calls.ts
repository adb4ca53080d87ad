/** Calls that ring on the loopback network. Nobody can answer one: they are there for rejectCall and msgCall. */
import { randomUUID } from 'node:crypto';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import { z } from 'zod';

/** Nobody lets a telephone ring for longer. */
const RINGS_SECONDS = 60;
const callKey = (callId: string): string => gatewayKey('loopback', 'call', callId);

const Call = z.object({ fromJid: z.string(), instanceId: z.string(), timestampSeconds: z.int() });
type Call = z.infer<typeof Call>;

export class Calls {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async begin(call: Call): Promise<string> {
    const callId = randomUUID();
    await this.#redis.set(callKey(callId), JSON.stringify(call), 'EX', RINGS_SECONDS);
    return callId;
  }

  /** The call if it still rang. */
  async end(callId: string): Promise<Call | undefined> {
    const stored = await this.#redis.getdel(callKey(callId));
    return stored === null ? undefined : Call.parse(JSON.parse(stored));
  }
}
