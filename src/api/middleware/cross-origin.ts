/** Which web pages of elsewhere may call the API (decisions E, CORS_ORIGINS; WHATWG Fetch, "CORS protocol"). */
import cors from 'cors';
import type { RequestHandler } from 'express';

/** What a page may read beside the body; a browser hides every other header. */
const EXPOSED = [
  'Content-Disposition',
  'Content-Range',
  'ETag',
  'Idempotent-Replayed',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Tus-Checksum-Algorithm',
  'Tus-Extension',
  'Tus-Max-Size',
  'Tus-Resumable',
  'Tus-Version',
  'Upload-Expires',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'X-Request-Id',
];
const DAY_SECONDS = 24 * 60 * 60;

/** @param origins such as `https://app.example.com`; `*` for any; none: no page of elsewhere */
export function crossOrigin(origins: readonly string[]): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED,
    maxAge: DAY_SECONDS,
    // The key is a header that the page sets itself; cookies play no part.
    credentials: false,
    preflightContinue: true,
  });
}
