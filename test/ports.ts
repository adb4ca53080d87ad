/** Ports for servers that cannot tell which one they chose, and for those that come back on the same one. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those that the system gives to connections that go out (Linux: from 32768 on). One of these would be taken by any connection
 * before its server listens, or while the server is away, and a client that knocks there could be connected with itself.
 */
const FIRST = 20_000;
const END = 32_768;

/** Ports of 127.0.0.1 that nobody listens on at the moment. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  await once(server.close(), 'close');
  return true;
}
