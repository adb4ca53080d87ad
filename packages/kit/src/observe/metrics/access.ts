/** Who may read the metrics (decisions E "Health"): whoever has the token, or, without one and behind no proxy, whoever is on this machine. */
import type { IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import { isSameSecret } from '../../signing/same-secret.ts';

/** What proxies say of whom they speak for; that one may be anybody. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

export interface Readers {
  readonly token: string | undefined;
  /** The service is reached under a name of another machine than this: without a token nobody may read, then. */
  readonly isPublished: boolean;
}

export function mayScrape(request: IncomingMessage, { token, isPublished }: Readers): boolean {
  return token === undefined ? !isPublished && isFromHere(request) : hasToken(request, token);
}

/** RFC 6750, 2.1. */
function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const [, given = ''] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  return isSameSecret(given, token);
}

/**
 * A proxy on this machine is a peer on this machine, whoever asks it: a request that went through one, by its headers or by the name that it was
 * sent to, is not from here, whatever TRUST_PROXY says. The name also keeps out a web page that had a name of its own resolve to this machine.
 * A proxy that says nothing of itself (nginx's bare proxy_pass adds no header, and sends the address that it forwards to as Host) is not found out here: therefore `isPublished`.
 */
function isFromHere({ socket, headers }: IncomingMessage): boolean {
  return (
    isLoopback(socket.remoteAddress ?? '') &&
    FORWARDING_HEADERS.every((name) => headers[name] === undefined) &&
    namesLoopback(headers.host ?? '')
  );
}

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, '');
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

/** @param host with or without a port */
export function namesLoopback(host: string): boolean {
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return name.toLowerCase() === 'localhost' || isLoopback(name);
}
