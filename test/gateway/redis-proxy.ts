/**
 * Stands between a gateway and its Redis and lets a test stop time at a command: the command reaches Redis or not,
 * and from then on nothing passes any more, in neither direction.
 */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';

export interface RedisProxy {
  readonly url: string;
  /** Resolves when the moment has come. */
  readonly stopped: Promise<void>;
  close(): Promise<void>;
}

export interface StopAt {
  /** A text in the command, or what finds it there. */
  readonly command: string | RegExp;
  /** Whether Redis still gets this command; its answer is lost either way. */
  readonly reachesRedis: boolean;
}

export async function startRedisProxy(redisSocket: string, stopAt: StopAt): Promise<RedisProxy> {
  const path = `${redisSocket}.proxy`;
  const sockets = new Set<Socket>();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  let passing = true;
  const server = createServer((gateway) => {
    const redis = createConnection(redisSocket);
    for (const socket of [gateway, redis]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
    gateway.on('close', () => redis.destroy());
    redis.on('close', () => gateway.destroy());
    gateway.on('data', (chunk) => {
      if (!passing) return;
      const { command } = stopAt;
      const isMeant =
        typeof command === 'string' ? chunk.includes(command) : command.test(chunk.toString('latin1'));
      if (!isMeant) {
        redis.write(chunk);
        return;
      }
      passing = false;
      if (stopAt.reachesRedis) redis.write(chunk, () => stop());
      else stop();
    });
    redis.on('data', (chunk) => {
      if (passing) gateway.write(chunk);
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return {
    url: `unix://${path}`,
    stopped,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
      await rm(path, { force: true });
    },
  };
}
