import type { RequestHandler } from 'express';
import { jsonReader } from 'soundpost-kit/http/json-body';

/** Enough for 18 MiB of audio in base64 (decisions B "Audio"). */
const MAX_JSON_BYTES = 24 * 1024 * 1024;

export const readJson = jsonUpTo(MAX_JSON_BYTES);

function jsonUpTo(maxBytes: number): ReturnType<typeof jsonReader> {
  return jsonReader({ maxBytes, types: ['json', '+json'], inflate: true, strict: true });
}

/** Reads a JSON body: `{}` without one; rejects other types. */
export function jsonBodyUpTo(maxBytes: number): RequestHandler {
  const read = jsonUpTo(maxBytes);
  return async (request, response, next) => {
    request.body = await read(request, response);
    next();
  };
}

export const jsonBody = jsonBodyUpTo(MAX_JSON_BYTES);
