/**
 * Loaded into a gateway with `node --import`: kills it at a named point of a send. Like preload.ts it looks from outside, at what
 * goes to Redis, where the loopback network and all records of the gateway are. A file in FAULT_KILLS that is called
 * like a point arms it once.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';

interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly promise: Promise<unknown>;
}

/** What a command is to a send: the end of the names of the points before and after it. */
function stageOf({ name, args }: Command): 'intent' | 'delivery' | 'network' | 'answer' | undefined {
  const text = args.map(String);
  const isTaken = text.some((arg) => arg.includes(':gateway:loopback:taken:'));
  if (isTaken) return name === 'set' ? 'network' : 'delivery';
  if (name !== 'evalsha' || text[1] !== '1') return undefined;
  if (text[2]?.includes(':gateway:message:')) return 'intent';
  return text[2]?.includes(':idempotency:') && text.at(-1)?.startsWith('{') ? 'answer' : undefined;
}

function reach(point: string): void {
  try {
    rmSync(join(process.env.FAULT_KILLS ?? '', point));
  } catch {
    return;
  }
  process.kill(process.pid, 'SIGKILL');
}

const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (this: Redis, ...args) {
  const command = args[0] as unknown as Command;
  const stage = stageOf(command);
  if (stage === undefined) return sendCommand.apply(this, args);
  reach(`gateway-before-${stage}`);
  // Heard before the gateway itself hears it.
  command.promise.then(
    () => reach(`gateway-after-${stage}`),
    () => undefined,
  );
  return sendCommand.apply(this, args);
};
