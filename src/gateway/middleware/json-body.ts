import type { RequestHandler } from 'express';
import { GatewayError } from '../../contract/gateway-errors.ts';
import { jsonParser } from '../../http/json-body.ts';

/** Enough for 18 MiB of audio in base64 (decisions B "Audio"). */
const MAX_JSON_BYTES = 24 * 1024 * 1024;

/** Reads a JSON body. A request without a body reads as `{}`; one of another type is refused. */
export function jsonBodyUpTo(maxBytes: number): RequestHandler {
  const type = ['application/json', 'application/*+json'];
  const parse = jsonParser({ maxBytes, type, inflate: true, strict: true });
  return (request, response, next) => {
    // Some clients say that their body has no bytes, and then no type either.
    const isEmpty = request.get('content-length') === '0' && request.get('transfer-encoding') === undefined;
    // `is` answers null for a request without a body, false for one of another type.
    if (!isEmpty && request.is(['json', '+json']) === false) {
      throw new GatewayError('unsupported_media_type', 'Content-Type: must be application/json');
    }
    parse(request, response, (error?: unknown) => {
      request.body ??= {};
      next(error);
    });
  };
}

export const jsonBody = jsonBodyUpTo(MAX_JSON_BYTES);
