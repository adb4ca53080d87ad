/** Listening to channels, on a connection of its own. */
import { duplicateRedis, type Redis } from './connection.ts';

const RETRY_MS = 1000;

/**
 * Calls back with each message until the returned function is called. What is published while the connection is broken is lost: a message may
 * only make something quick that is also found without it.
 * @param channels what is called back, by the name of the channel
 * @param redis a connection of the role `worker`, which is duplicated
 * @param listening called whenever it listens again, since messages may have been lost before; also at the beginning
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
    // A cluster without a node to listen to refuses at once, instead of waiting for one.
    subscriber.subscribe(...Object.keys(channels)).then(listening, (error: Error) => {
      if (!isClosed) {
        warn(error);
        clearTimeout(retrying);
        retrying = setTimeout(begin, RETRY_MS);
      }
    });
  };
  if (listening !== undefined) {
    // ioredis subscribes again by itself, but says nothing of it; a cluster may have chosen another node to listen to.
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
