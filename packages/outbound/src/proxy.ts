/**
 * Connects through a forward proxy (CONNECT, RFC 9110, 9.3.6). The proxy gets a checked address,
 * never a name, so its own resolver changes nothing; its own rules apply on top.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { within } from 'soundpost-base/deadline';
import { request } from 'soundpost-base/node-http';
import { buildConnector } from 'undici';
import { parseAddress } from './address-table.ts';
import { type ConnectTarget, connectSocket } from './connector.ts';
import { OutboundFailed, OutboundRefused } from './errors.ts';

/** Targets that OUTBOUND_ALLOW opens skip the proxy. @param proxy http URL, with any credentials */
export async function connectThrough(proxy: URL, target: ConnectTarget): Promise<Socket> {
  if (target.isOpened) return connectSocket(target);
  const socket = await tunnelTo(proxy, target);
  return target.protocol === 'https:' ? secured(socket, target) : socket;
}

/** A tunnel to the first address that the proxy reaches. */
async function tunnelTo(proxy: URL, { addresses, port, timeoutMs }: ConnectTarget): Promise<Socket> {
  const untilMs = performance.now() + timeoutMs;
  let failure: unknown = new OutboundFailed('connect', 'the server could not be reached', true);
  for (const address of addresses) {
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0) break;
    try {
      return await tunnel(
        proxy,
        address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`,
        leftMs,
      );
    } catch (error) {
      // A refusal applies to all addresses.
      if (error instanceof OutboundRefused) throw error;
      failure = error;
    }
  }
  throw failure;
}

async function tunnel(proxy: URL, authority: string, timeoutMs: number): Promise<Socket> {
  const { username, password } = proxy;
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  const asking = request({
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || 80,
    method: 'CONNECT',
    path: authority,
    agent: false,
    headers: {
      host: authority,
      ...(username !== '' && { 'proxy-authorization': `Basic ${credentials.toString('base64')}` }),
    },
  });
  const reason = () => Object.assign(new Error('the proxy did not answer'), { code: 'ETIMEDOUT' });
  try {
    const connected = await within(timeoutMs, () => once(asking.end(), 'connect'), { reason });
    const [{ statusCode = 0 }, socket, early] = connected as [IncomingMessage, Socket, Buffer];
    if (statusCode >= 200 && statusCode < 300) {
      if (early.length > 0) socket.unshift(early);
      return socket;
    }
    socket.destroy();
    throw answered(statusCode);
  } catch (error) {
    asking.on('error', () => {}).destroy();
    throw error;
  }
}

/** 502, 503 and 504 mean that the server was not reached; anything else is a refusal. */
function answered(status: number): Error {
  return status >= 502 && status <= 504
    ? new OutboundFailed('connect', 'the server could not be reached', true)
    : new OutboundRefused(`the proxy answered ${status}`);
}

function secured(
  httpSocket: Socket,
  { protocol, hostname, port, timeoutMs }: ConnectTarget,
): Promise<Socket> {
  const connector = buildConnector({ allowH2: false, timeout: timeoutMs, maxCachedSessions: 0 });
  const servername = parseAddress(hostname) === undefined ? hostname : undefined;
  return new Promise((resolve, reject) => {
    connector({ protocol, hostname, port: String(port), servername, httpSocket }, (error, socket) =>
      error === null ? resolve(socket) : reject(error),
    );
  });
}
