/** Adds `GET /metrics` to an HTTP server, and measures the duration of each request. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isIPv4 } from 'node:net';
import { routeTemplate, type Watched } from '../../http/watched.ts';
import { isSameSecret } from '../../signing/signatures.ts';
import type { Metrics } from './scrape.ts';
import type { Part } from './table.ts';

const PATH = '/metrics';
/** Paths that every server has. */
const COMMON = new Set([PATH, '/health/live', '/health/ready']);
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
/** nginx's status for a request whose caller did not wait for the answer. */
const CLOSED_BY_CALLER = '499';

interface MeasuredServer extends Readers {
  readonly metrics: Metrics;
  readonly server: Part;
}

export function measured(handler: RequestListener, { metrics, server, ...readers }: MeasuredServer): Watched {
  const { registry } = metrics;
  return {
    handle(request, response) {
      const { url = '' } = request;
      if (url === PATH || url.startsWith(`${PATH}?`)) {
        answerScrape(request, response, metrics, readers).catch(() => response.destroy());
      } else {
        handler(request, response);
      }
    },
    ended(request, response, { url, atMs }) {
      const labels = {
        server,
        method: METHODS.find((method) => method === request.method) ?? ('other' as const),
        // Held back on request: no sign of slowness.
        route: (routeTemplate(request) ?? commonPath(url)) + (hasWaited(response) ? ' (waiting)' : ''),
        status: response.headersSent ? String(response.statusCode) : CLOSED_BY_CALLER,
      };
      const seconds = (performance.now() - atMs) / 1000;
      registry.observe('http_server_request_duration_seconds', labels, seconds);
    },
  };
}

/** RFC 7240, 3. */
function hasWaited(response: ServerResponse): boolean {
  return response.getHeader('preference-applied') === 'wait';
}

function commonPath(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return COMMON.has(path) ? path : '(none)';
}

async function answerScrape(
  request: IncomingMessage,
  response: ServerResponse,
  metrics: Metrics,
  readers: Readers,
): Promise<void> {
  response.setHeader('Cache-Control', 'no-store').setHeader('X-Content-Type-Options', 'nosniff');
  const say = (status: number, sentence: string): void => {
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${sentence}\n`);
  };
  if (!mayScrape(request, readers)) {
    if (readers.token === undefined) {
      say(403, 'the metrics are for this machine alone: set METRICS_TOKEN, and send it as a Bearer token');
    } else {
      response.setHeader('WWW-Authenticate', 'Bearer realm="metrics"');
      say(401, 'send METRICS_TOKEN as a Bearer token');
    }
    return;
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    say(405, 'use GET');
    return;
  }
  const { contentType, text } = await metrics.scrape();
  response.setHeader('Content-Type', contentType).end(text);
}

// Access to the metrics (decisions E "Health"): with the token, or, without one and without a
// proxy, from this machine.

/** Headers by which proxies name the original caller. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

interface Readers {
  readonly token: string | undefined;
  /** The service is reached under another machine's name: without a token nobody may read then. */
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
 * A proxy on this machine looks local, so requests with proxy headers or another Host do not count
 * as local, whatever TRUST_PROXY says. Checking Host also stops DNS rebinding by web pages. nginx's
 * bare proxy_pass adds no header and sends its target as Host: therefore `isPublished`.
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
