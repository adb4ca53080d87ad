/** A key of the gateway's state; all share one slot of a Redis Cluster, so that a script may touch several. */
export function gatewayKey(...segments: readonly string[]): string {
  return [KEY_PREFIX, 'gateway', ...segments].join(':');
}

import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
