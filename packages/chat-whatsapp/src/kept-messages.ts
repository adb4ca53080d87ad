/**
 * Messages of the last 7 days, sealed in Redis. Recipients that could not decrypt a message ask for
 * it again, and a quotation carries the message that it quotes.
 */
import type { WAMessage } from 'baileys';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import { z } from 'zod';
import type { BaileysLibrary } from './library.ts';

interface KeptMessagesOptions {
  readonly redis: Redis;
  readonly sealer: Sealer;
  readonly instanceId: string;
}

const KEEP_SECONDS = 7 * 24 * 60 * 60;

const Kept = z.object({
  remoteJid: z.string(),
  fromMe: z.boolean(),
  participant: z.string().optional(),
  /** The protobuf message, base64. */
  message: z.string(),
});

export class KeptMessages {
  readonly #options: KeptMessagesOptions;
  /** Ids by expiry time, ms. */
  readonly #index: string;

  constructor(options: KeptMessagesOptions) {
    this.#options = options;
    this.#index = gatewayKey('whatsapp', options.instanceId, 'messages');
  }

  async keep(library: BaileysLibrary, { key, message }: WAMessage): Promise<void> {
    const { redis, sealer } = this.#options;
    const { id, remoteJid } = key;
    if (!(id && remoteJid && message)) {
      return;
    }
    const kept: z.infer<typeof Kept> = {
      remoteJid,
      fromMe: key.fromMe ?? false,
      ...(key.participant ? { participant: key.participant } : {}),
      message: Buffer.from(library.proto.Message.encode(message).finish()).toString('base64'),
    };
    const now = redisNow();
    await redis
      .multi()
      .set(this.#key(id), sealer.seal(this.#key(id), JSON.stringify(kept)), 'EX', KEEP_SECONDS)
      .zadd(this.#index, now + KEEP_SECONDS * 1000, id)
      .zremrangebyscore(this.#index, '-inf', now)
      .exec();
  }

  async find(library: BaileysLibrary, id: string): Promise<WAMessage | undefined> {
    const sealed = await this.#options.redis.get(this.#key(id));
    if (sealed === null) {
      return undefined;
    }
    const { message, ...key } = Kept.parse(JSON.parse(this.#options.sealer.open(this.#key(id), sealed)));
    return {
      key: { ...key, id },
      message: library.proto.Message.decode(Buffer.from(message, 'base64')),
    };
  }

  async erase(): Promise<void> {
    const { redis } = this.#options;
    const ids = await redis.zrange(this.#index, '0', '-1');
    await redis.unlink(this.#index, ...ids.map((id) => this.#key(id)));
  }

  #key(id: string): string {
    return gatewayKey('whatsapp', this.#options.instanceId, 'message', id);
  }
}
