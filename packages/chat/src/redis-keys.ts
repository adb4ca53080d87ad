/** A key of the gateway. All share one slot of a Redis Cluster, so a script can use several. */
export function gatewayKey(...segments: readonly string[]): string {
  return [KEY_PREFIX, 'gateway', ...segments].join(':');
}

import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
