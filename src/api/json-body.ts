/** Reads a request's JSON body (decisions A1): up to 256 KiB, another type is refused. */
import express, { type Request, type RequestHandler, type Response } from 'express';
import { ServiceError } from '../contract/errors.ts';
import { answeringAtOnce, jsonParser } from '../http/json-body.ts';

const MAX_BYTES = 256 * 1024;
const parse = jsonParser({ maxBytes: MAX_BYTES, type: ['application/json'], inflate: false, strict: false });
const parseText = answeringAtOnce(
  express.text({ limit: MAX_BYTES, type: () => true, inflate: false }),
  MAX_BYTES,
);

/** Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE or INVALID_REQUEST. */
export async function readJson(request: Request, response: Response): Promise<unknown> {
  if (!request.is('application/json')) {
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'send application/json');
  }
  await run(parse, request, response);
  return request.body;
}

/** The body as it was sent, for a signature over its bytes. */
export async function readText(request: Request, response: Response): Promise<string> {
  await run(parseText, request, response);
  return typeof request.body === 'string' ? request.body : '';
}

async function run(parser: RequestHandler, request: Request, response: Response): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    parser(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
  });
}
