/** The processes of a checkout of the first edition, over a Redis and a folder of their own. */
import { resolve } from 'node:path';
import { Redis } from 'ioredis';
import { startTestRedis } from '../../redis-server.ts';
import { type Environment, type RunningProcess, ServiceHome } from '../../service.ts';
import { type Outside, openOutside } from '../outside.ts';

/** What the second edition has to be started with as well. */
const KEPT = {
  SECRET_KEY: 'the secret key of the first edition, kept for its heirs',
  GATEWAY_API_KEY: 'the key of the gateway of the first edition',
  // Of media, in messages that are kept: the same before and after.
  GATEWAY_PUBLIC_URL: 'http://gateway.example',
};

export interface FirstEdition {
  readonly outside: Outside;
  readonly redis: Redis;
  /** Its folder; `data` inside is its DATA_DIR. */
  readonly home: string;
  /** What the manifest tells of its environment. */
  readonly environment: Environment;
  /** The bootstrap key. */
  readonly key: string;
  start(command: string, environment?: Environment, preload?: string): RunningProcess;
  /** What a command prints. */
  run(...args: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

export async function openFirstEdition(checkout: string): Promise<FirstEdition> {
  const main = resolve(checkout, 'src/main.ts');
  const server = await startTestRedis();
  const redis = new Redis(server.socketPath);
  const outside = await openOutside();
  const home = await ServiceHome.make({
    ...KEPT,
    REDIS_URL: server.url,
    OUTBOUND_ALLOW: outside.outboundAllow,
    LOG_LEVEL: 'info',
  });
  return {
    outside,
    redis,
    home: home.folder,
    environment: KEPT,
    key: home.key,
    start(command, environment, preload) {
      const preloads = preload === undefined ? [] : ['--import', preload];
      return home.run([process.execPath, ...preloads, main, command], environment);
    },
    async run(...args) {
      const command = home.run([process.execPath, main, ...args], { LOG_LEVEL: 'silent' });
      if ((await command.exited) !== 0) throw new Error(command.output());
      return command.output().trim();
    },
    async close() {
      await home.remove();
      await outside.close();
      redis.disconnect();
      await server.close();
    },
  };
}

export async function kill(child: RunningProcess): Promise<void> {
  child.signal('SIGKILL');
  await child.exited;
}
