/**
 * The console at `/`, an API client for a key that the user enters. `script/build-web.ts` builds it
 * from web/console (docs/decisions/0041-console-in-typescript.md). It stores no data of its own.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RequestHandler, Router } from 'express';
import { newRouter } from 'soundpost-kit/http/routes';
import { filesIn, staticFiles } from 'soundpost-kit/http/static-files';

const PAGE = new URL('../../web/dist/console/', import.meta.url);

/** Placeholders in index.html: a nonce for each answer, and what this service offers. */
const NONCE = 'NONCE';
const GATEWAY = 'GATEWAY';
const TRANSCRIBER = 'TRANSCRIBER';
const compress = promisify<string, Buffer>(gzip);

interface ConsoleOptions {
  /** Origins of the bucket that downloads redirect to. */
  readonly downloadOrigins: readonly string[];
  /** The gateway's public URL without trailing slash; undefined: no gateway of ours. */
  readonly gatewayUrl?: string | undefined;
  /** Whether transcripts are offered. */
  readonly hasTranscriber: boolean;
}

/** @throws if the page has not been built */
export function consolePage(options: ConsoleOptions): Router {
  if (!existsSync(PAGE)) {
    throw new Error('web/dist is missing, which the console is served from: script/bootstrap builds it');
  }
  const files = filesIn(PAGE, 'console/').filter(([path]) => path !== 'console/index.html');
  const router = newRouter({ isExact: true });
  router.get('/', page(options));
  router.get('/console/*file', staticFiles(new Map(files)));
  return router;
}

/**
 * A nonce, new for each answer, allows the page's script and wavesurfer.js's style element. So the
 * answer is not cached: a 304 would bring a policy with another nonce.
 */
function page(options: ConsoleOptions): RequestHandler {
  const html = readFileSync(new URL('index.html', PAGE), 'utf8')
    .replace(GATEWAY, attribute(options.gatewayUrl ?? ''))
    .replace(TRANSCRIBER, options.hasTranscriber ? 'yes' : 'no');
  return async (request, response) => {
    const nonce = randomBytes(16).toString('base64');
    response.set({
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': contentSecurityPolicy(nonce, options),
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
      Vary: 'Accept-Encoding',
    });
    const text = html.replaceAll(NONCE, nonce);
    if (request.acceptsEncodings('gzip') === false) {
      response.send(text);
    } else {
      response.set('Content-Encoding', 'gzip').send(await compress(text));
    }
  };
}

/** Escapes text for a quoted attribute. */
function attribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
}

function contentSecurityPolicy(nonce: string, { downloadOrigins, gatewayUrl }: ConsoleOptions): string {
  const fromBucket = downloadOrigins.map((origin) => ` ${origin}`).join('');
  const fromGateway = gatewayUrl === undefined ? '' : ` ${new URL(gatewayUrl).origin}`;
  return [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    // The pairing QR code is drawn in the page.
    "img-src 'self' data:",
    `connect-src 'self'${fromBucket}${fromGateway}`,
    // For playing a file before its upload.
    `media-src 'self' blob:${fromBucket}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
