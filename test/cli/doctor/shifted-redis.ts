/** A Redis whose clock goes wrong: what a real one answers to TIME is changed on the wire, since nobody can move its clock. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

export interface ShiftedRedis {
  /** `redis://…` */
  readonly url: string;
  close(): Promise<void>;
}

/** TIME's answer in RESP: an array of seconds and microseconds since 1970. */
const TIME = /\*2\r\n\$10\r\n(\d{10})\r\n(\$\d\r\n\d{1,6}\r\n)/g;

export async function shiftedRedis(socketPath: string, seconds: number): Promise<ShiftedRedis> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect(socketPath);
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    client.pipe(redis);
    redis.on('data', (answer) => {
      const text = answer.toString('latin1');
      const shifted = text.replaceAll(
        TIME,
        (_answer, theirs: string, rest: string) => `*2\r\n$10\r\n${Number(theirs) + seconds}\r\n${rest}`,
      );
      client.write(shifted, 'latin1');
    });
    redis.on('end', () => client.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
