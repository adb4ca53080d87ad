/**
 * The console at `/`: a page that is a client of the API like any other, with a key that somebody types in. `script/build-web.ts` makes its files of
 * web/console (docs/decisions/0041-console-in-typescript.md). It has no data of its own.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RequestHandler, Router } from 'express';
import { newRouter } from 'soundpost-kit/http/routes';
import { filesIn, staticFiles } from 'soundpost-kit/http/static-files';

const PAGE = new URL('../../web/dist/console/', import.meta.url);

/** Stand in index.html where each answer has a nonce of its own, and where it is told what this service has. */
const NONCE = 'NONCE';
const GATEWAY = 'GATEWAY';
const TRANSCRIBER = 'TRANSCRIBER';
const compress = promisify<string, Buffer>(gzip);

interface ConsoleOptions {
  /** Where downloads are led to, beside this service: origins of the bucket. */
  readonly downloadOrigins: readonly string[];
  /** Where browsers reach the gateway, without a slash at the end; undefined: there is none of ours. */
  readonly gatewayUrl?: string | undefined;
  /** Whether transcripts may be asked for. */
  readonly hasTranscriber: boolean;
}

/** @throws where the page was not built */
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
 * The page itself. The script in it, and the style element that wavesurfer.js puts around its drawing, are allowed by a nonce, a new one for each
 * answer; so the answer is never kept: a 304 would bring a policy with another nonce than the kept page has.
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

/** A text inside the quotes of an attribute. */
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
    // The picture that pairs an instance is drawn in the page.
    "img-src 'self' data:",
    `connect-src 'self'${fromBucket}${fromGateway}`,
    // A file is heard before it is uploaded.
    `media-src 'self' blob:${fromBucket}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
