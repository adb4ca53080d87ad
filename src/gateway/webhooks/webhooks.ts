/** Each instance's webhook: address, headers, events and signing secret. */
import { randomBytes } from 'node:crypto';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { gatewayEventNames } from 'soundpost-contract/gateway-events';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, UnreadableRecord, withEdition } from 'soundpost-kit/redis/record';
import { SealBroken, type Sealer } from 'soundpost-kit/signing/sealer';
import { z } from 'zod';

const Webhook = z.object({
  enabled: z.boolean(),
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  /** Whether each event has an address of its own, see {@link addressOf}. */
  byEvents: z.boolean().default(false),
  /** Whether media are put into events. */
  base64: z.boolean().default(false),
  events: z.array(z.enum(gatewayEventNames)),
  /** `whsec_<base64>` */
  secret: z.string(),
});
type Webhook = z.infer<typeof Webhook>;

const WEBHOOKS = gatewayKey('webhooks');
/** Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;

export class Webhooks {
  readonly #redis: Redis;
  readonly #sealer: Sealer;

  constructor(redis: Redis, sealer: Sealer) {
    this.#redis = redis;
    this.#sealer = sealer;
  }

  /** Addresses and headers can hold secrets, so all of it is sealed. */
  async of(instanceId: string): Promise<Webhook | undefined> {
    const sealed = await this.#redis.hget(WEBHOOKS, instanceId);
    if (sealed === null) return undefined;
    try {
      return readText(Webhook, this.#sealer.open(labelOf(instanceId), sealed));
    } catch (error) {
      // After `accept-secret`, or where it is damaged, it is lost, and can be set again.
      if (error instanceof SealBroken || error instanceof UnreadableRecord) return undefined;
      throw error;
    }
  }

  /** Keeps the secret, so that receivers are unaffected by a new address. */
  async set(instanceId: string, webhook: Omit<Webhook, 'secret'>): Promise<Webhook> {
    const known = await this.of(instanceId);
    const secret = known?.secret ?? `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
    const complete: Webhook = { ...webhook, secret };
    const sealed = this.#sealer.seal(labelOf(instanceId), JSON.stringify(withEdition(complete)));
    await this.#redis.hset(WEBHOOKS, instanceId, sealed);
    return complete;
  }

  async remove({ id }: { readonly id: string }): Promise<void> {
    await this.#redis.hdel(WEBHOOKS, id);
  }
}

/** Where an event goes: with `byEvents` to a path of its own. */
export function addressOf({ url, byEvents }: Pick<Webhook, 'url' | 'byEvents'>, event: string): string {
  if (!byEvents) return url;
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/$/, '')}/${event.replaceAll('.', '-')}`;
  return address.href;
}

const labelOf = (instanceId: string): string => `webhook of ${instanceId}`;
