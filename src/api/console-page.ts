/**
 * The console at `/`: a page that is a client of the API like any other, with a key that somebody types in. Its files lie in web/console and web/shared;
 * two libraries come from their packages (docs/decisions/0019-console.md). It has no data of its own.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';
import { type RequestHandler, Router } from 'express';
import { errorCatalogue } from '../contract/errors.ts';
import { formats, qualities } from '../contract/formats.ts';
import { processingSteps } from '../contract/job.ts';
import { filesIn, type StaticSource, staticFiles } from '../http/static-files.ts';

const PAGE = new URL('../../web/console/', import.meta.url);
const SHARED = new URL('../../web/shared/', import.meta.url);

/** Height of every waveform, CSS pixels; web/console/waveform.js says the same. It stands in a style that the library brings. */
const WAVEFORM_HEIGHT = 96;

export interface ConsoleOptions {
  /** Where downloads are led to, beside this service: origins of the bucket. */
  readonly downloadOrigins: readonly string[];
}

export function consolePage({ downloadOrigins }: ConsoleOptions): Router {
  const waveform = packageFile('wavesurfer.js', 'dist/wavesurfer.esm.js');
  const sources = new Map<string, StaticSource>([
    ['', new URL('index.html', PAGE)],
    ...filesIn(PAGE, 'console/'),
    ...filesIn(SHARED, 'console/shared/'),
    ['console/contract.js', contractModule()],
    ['console/lib/tus.js', packageFile('tus-js-client', 'dist/tus.min.js')],
    ['console/lib/wavesurfer.js', waveform],
    ['console/lib/regions.js', packageFile('wavesurfer.js', 'dist/plugins/regions.esm.js')],
  ]);
  const policy = contentSecurityPolicy(waveformStyle(waveform), downloadOrigins);
  const files = staticFiles(sources);
  const answer: RequestHandler = (request, response, next) => {
    if (!sources.has(request.path.slice(1))) {
      next();
      return;
    }
    response.set({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
    return files(request, response, next);
  };
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/', answer);
  router.get('/console/*file', answer);
  return router;
}

/** What the page knows of the contract, so that it is written down once. */
function contractModule(): string {
  const shown = Object.entries(formats).map(([name, { quality, mediaType, extension }]) => [
    name,
    { quality, mediaType, extension },
  ]);
  const errors = Object.entries(errorCatalogue).map(([code, { meaning, remedy }]) => [
    code,
    { meaning, remedy },
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

/**
 * The text of the style element that wavesurfer.js puts around its drawing. It is a template in the library, whose only changing part is the height.
 */
function waveformStyle(library: URL): string {
  const [, template] = /<style\$\{[^>]*\}>(.*?)<\/style>/s.exec(readFileSync(library, 'utf8')) ?? [];
  if (template === undefined) {
    throw new Error('wavesurfer.js brings no style as it did: look at what its shadow root holds now');
  }
  return template.replaceAll('\\n', '\n').replace(/\$\{[^}]*\}/, String(WAVEFORM_HEIGHT));
}

function contentSecurityPolicy(style: string, downloadOrigins: readonly string[]): string {
  const styleHash = createHash('sha256').update(style).digest('base64');
  const fromBucket = downloadOrigins.map((origin) => ` ${origin}`).join('');
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'sha256-${styleHash}'`,
    "img-src 'self'",
    `connect-src 'self'${fromBucket}`,
    // A file is heard before it is uploaded.
    `media-src 'self' blob:${fromBucket}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
