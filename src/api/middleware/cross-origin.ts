/** What pages of elsewhere may do at the API, where CORS_ORIGINS names them. */
import type { RequestHandler } from 'express';
import { crossOrigin } from 'soundpost-kit/http/cross-origin';

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

export function apiFromElsewhere(origins: readonly string[]): RequestHandler {
  return crossOrigin({
    origins,
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED,
    preflightContinue: true,
  });
}
