/**
 * The console at `/`: a page that is a client of the API like any other, with a key that somebody types in. Its files lie in web/console and web/shared;
 * two libraries come from their packages (docs/decisions/0019-console.md). It has no data of its own.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RequestHandler, Router } from 'express';
import { errorCatalogue } from '../contract/errors.ts';
import { formats, qualities } from '../contract/formats.ts';
import { processingSteps } from '../contract/job.ts';
import { newRouter } from '../http/routes.ts';
import { filesIn, type StaticSource, staticFiles } from '../http/static-files.ts';

const PAGE = new URL('../../web/console/', import.meta.url);
const SHARED = new URL('../../web/shared/', import.meta.url);

/** Stands in index.html where each answer has a nonce of its own. */
const NONCE = 'NONCE';
const compress = promisify<string, Buffer>(gzip);

export interface ConsoleOptions {
  /** Where downloads are led to, beside this service: origins of the bucket. */
  readonly downloadOrigins: readonly string[];
}

export function consolePage({ downloadOrigins }: ConsoleOptions): Router {
  const sources = new Map<string, StaticSource>([
    ...filesIn(PAGE, 'console/').filter(([path]) => path !== 'console/index.html'),
    ...filesIn(SHARED, 'console/shared/'),
    ['console/contract.js', contractModule()],
    ['console/lib/tus.js', packageFile('tus-js-client', 'dist/tus.min.js')],
    ['console/lib/wavesurfer.js', packageFile('wavesurfer.js', 'dist/wavesurfer.esm.js')],
    ['console/lib/regions.js', packageFile('wavesurfer.js', 'dist/plugins/regions.esm.js')],
  ]);
  const router = newRouter({ isExact: true });
  router.get('/', page(downloadOrigins));
  router.get('/console/*file', staticFiles(sources));
  return router;
}

/**
 * The page itself. The style element that wavesurfer.js puts around its drawing is allowed by a nonce, a new one for each answer; so the answer is
 * never kept: a 304 would bring a policy with another nonce than the kept page has.
 */
function page(downloadOrigins: readonly string[]): RequestHandler {
  const html = readFileSync(new URL('index.html', PAGE), 'utf8');
  return async (request, response) => {
    const nonce = randomBytes(16).toString('base64');
    response.set({
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': contentSecurityPolicy(nonce, downloadOrigins),
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
      Vary: 'Accept-Encoding',
    });
    const text = html.replace(NONCE, nonce);
    if (request.acceptsEncodings('gzip') === false) {
      response.send(text);
    } else {
      response.set('Content-Encoding', 'gzip').send(await compress(text));
    }
  };
}

/** What the page knows of the contract, so that it is written down once. */
function contractModule(): string {
  const shown = Object.entries(formats).map(([name, { quality, mediaType, extension }]) => [
    name,
    { quality, mediaType, extension },
  ]);
  const errors = Object.entries(errorCatalogue).map(([code, { meaning, remedy, retryable }]) => [
    code,
    { meaning, remedy, retryable },
  ]);
  return Object.entries({
    formats: Object.fromEntries(shown),
    errors: Object.fromEntries(errors),
    qualities,
    processingSteps,
  })
    .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`)
    .join('');
}

/** Found as Node finds it, wherever the package manager has put it. */
function packageFile(name: string, path: string): URL {
  const description = findPackageJSON(name, import.meta.url);
  if (description === undefined) {
    throw new Error(`the console needs the package ${name}: npm ci installs it`);
  }
  return new URL(path, pathToFileURL(description));
}

function contentSecurityPolicy(nonce: string, downloadOrigins: readonly string[]): string {
  const fromBucket = downloadOrigins.map((origin) => ` ${origin}`).join('');
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    `connect-src 'self'${fromBucket}`,
    // A file is heard before it is uploaded.
    `media-src 'self' blob:${fromBucket}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
