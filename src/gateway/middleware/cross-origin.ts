/** Web pages that may call the gateway: the console, and those of CORS_ORIGINS. They need its key like anybody else. */
import type { RequestHandler } from 'express';
import { crossOrigin } from 'soundpost-kit/http/cross-origin';

/** Any other page is answered as if it had not said where it comes from. */
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
