/** CORS for the console and for CORS_ORIGINS. Their pages need the key like anyone else. */
import type { RequestHandler } from 'express';
import { crossOrigin } from 'soundpost-kit/http/cross-origin';

/** Other origins are answered without CORS headers. */
export function gatewayFromElsewhere(origins: readonly string[]): RequestHandler {
  const answer = crossOrigin({
    origins,
    methods: ['GET', 'POST', 'DELETE'],
    exposedHeaders: ['Retry-After', 'X-Request-Id'],
  });
  const known = new Set(origins);
  return (request, response, next) => {
    const { origin } = request.headers;
    if (known.has('*') || (origin !== undefined && known.has(origin))) return answer(request, response, next);
    response.vary('Origin');
    next();
  };
}
