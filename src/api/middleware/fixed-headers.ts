/** Headers that every answer carries, made once: what the libraries would set is the same for every request from no page of elsewhere. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Request, RequestHandler, Response } from 'express';
import helmet from 'helmet';
import { crossOrigin } from 'soundpost-kit/http/cross-origin';
import type { ApiSettings } from '../route.ts';

export function fixedHeaders({ publicUrl, corsOrigins }: ApiSettings): Map<string, string> {
  const request = new IncomingMessage(new Socket());
  request.method = 'GET';
  const response = new ServerResponse(request);
  const headers = new Map<string, string>();
  response.setHeader = (name, value) => {
    headers.set(name, String(value));
    return response;
  };
  securityHeaders(publicUrl)(request, response, () => undefined);
  apiFromElsewhere(corsOrigins)(request as Request, response as Response, () => undefined);
  return headers;
}

/** JSON and files need nothing of a browser; pages set a policy of their own. */
function securityHeaders(publicUrl: string): ReturnType<typeof helmet> {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    // RFC 6797 7.2: not over http, where a browser would have to ignore it.
    strictTransportSecurity: publicUrl.startsWith('https:'),
  });
}

// What pages of elsewhere may do at the API, where CORS_ORIGINS names them.

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
