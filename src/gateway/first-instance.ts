import type { Instances } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Redis } from 'soundpost-kit/redis/connection';

/** A gateway that never had an instance begins with one, so that the first message needs no preparation. */
export async function seedFirstInstance(redis: Redis, instances: Instances): Promise<void> {
  const seeded = gatewayKey('seeded');
  if ((await redis.exists(seeded)) === 1) {
    return;
  }
  if ((await instances.list()).length === 0) {
    try {
      await instances.create({ instanceName: 'main', transport: 'loopback' });
    } catch (error) {
      // Another process was quicker.
      if (!(error instanceof GatewayError && error.code === 'name_in_use')) {
        throw error;
      }
    }
  }
  await redis.set(seeded, '1');
}
