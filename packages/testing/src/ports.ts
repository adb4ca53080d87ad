/**
 * Ports for servers that cannot tell which one they chose, and for those that come back on the same
 * one.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those that the system gives to connections that go out (Linux: from 32768 on). One of these
 * would be taken by any connection before its server listens, or while the server is away, and a
 * client that knocks there could be connected with itself.
 */
const FIRST = 20_000;
const END = 32_768;

/**
 * Between finding a port and listening on it another file of this run may look as well: each of
 * those that run at the same time has a share.
 */
const SHARES = 8;
const SHARE = Math.floor((END - FIRST) / SHARES);
const share = Number(process.env.VITEST_POOL_ID ?? 0) % SHARES;

/** By this file: what it is to be used for may not listen yet, or be away. */
const given = new Set<number>();

/** Ports of 127.0.0.1 that nobody listens on at the moment, each of them given once. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST + share * SHARE + randomInt(SHARE);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

/** Two of them that stand side by side. */
export async function freeNeighbours(): Promise<readonly [number, number]> {
  for (;;) {
    const [port = 0] = await freePorts(1);
    if (!given.has(port + 1) && (await isFree(port + 1))) {
      given.add(port + 1);
      return [port, port + 1];
    }
  }
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
