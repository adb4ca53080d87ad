/** Listening to a channel, on a connection of its own. */
import { duplicateRedis, type Redis } from './connection.ts';

const RETRY_MS = 1000;

/**
 * Calls back with each message until the returned function is called. What is published while the connection is broken is lost: a message may
 * only make something quick that is also found without it.
 * @param redis a connection of the role `worker`, which is duplicated
 */
export function subscribe(
  redis: Redis,
  channel: string,
  onMessage: (message: string) => void,
  warn: (error: Error) => void,
): () => void {
  const subscriber = duplicateRedis(redis);
  let retrying: NodeJS.Timeout | undefined;
  let isClosed = false;
  const begin = (): void => {
    // A cluster without a node to listen to refuses at once, instead of waiting for one.
    subscriber.subscribe(channel).catch((error: Error) => {
      if (!isClosed) {
        warn(error);
        retrying = setTimeout(begin, RETRY_MS);
      }
    });
  };
  subscriber.on('error', warn);
  subscriber.on('message', (_channel: string, message: string) => onMessage(message));
  begin();
  return () => {
    isClosed = true;
    clearTimeout(retrying);
    subscriber.disconnect();
  };
}
