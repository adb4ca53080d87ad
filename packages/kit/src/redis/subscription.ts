/** Subscribes to channels on a separate connection. */
import { duplicateRedis, type Redis } from './connection.ts';

const RETRY_MS = 1000;

/**
 * Calls back with each message until the returned function is called. Messages are lost while the
 * connection is broken, so they may only speed up what is found without them too.
 * @param channels callbacks by channel
 * @param redis a connection of the role `worker`, which is duplicated
 * @param listening called at each (re)subscription: earlier messages may have been lost
 */
export function subscribe(
  redis: Redis,
  channels: Readonly<Record<string, (message: string) => void>>,
  warn: (error: Error) => void,
  listening?: () => void,
): () => void {
  const subscriber = duplicateRedis(redis);
  let retrying: NodeJS.Timeout | undefined;
  let isClosed = false;
  const begin = (): void => {
    // A cluster without a node for it rejects at once, instead of waiting for one.
    subscriber.subscribe(...Object.keys(channels)).then(listening, (error: Error) => {
      if (!isClosed) {
        warn(error);
        clearTimeout(retrying);
        retrying = setTimeout(begin, RETRY_MS);
      }
    });
  };
  if (listening !== undefined) {
    // ioredis resubscribes without an event, and a cluster may have switched to another node.
    for (const event of ['ready', '+node', '-node']) subscriber.on(event, begin);
  }
  subscriber.on('error', warn);
  subscriber.on('message', (channel: string, message: string) => channels[channel]?.(message));
  begin();
  return () => {
    isClosed = true;
    clearTimeout(retrying);
    subscriber.disconnect();
  };
}
