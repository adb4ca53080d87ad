/** Reads a request's JSON body (decisions A1): up to 256 KiB, another type is refused. */
import express, { type Request, type RequestHandler, type Response } from 'express';
import { ServiceError } from '../contract/errors.ts';
import { answeringAtOnce, jsonParser } from '../http/json-body.ts';
import { verifyJson } from '../http/json-shape.ts';

const MAX_BYTES = 256 * 1024;
const BYTE_ORDER_MARK = '\u{FEFF}';
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
  if (isPlain(request)) {
    return parsePlain(await wholeBody(request));
  }
  await run(parse, request, response);
  return request.body;
}

/** As nearly every client sends it. The parser of Express decides first what else it might be, which takes longer than to parse it. */
function isPlain({ headers }: Request): boolean {
  const length = Number(headers['content-length']);
  return (
    headers['content-type'] === 'application/json' &&
    headers['content-encoding'] === undefined &&
    length > 0 &&
    length <= MAX_BYTES
  );
}

function parsePlain(bytes: Buffer): unknown {
  verifyJson(undefined, undefined, bytes, 'utf-8');
  const text = bytes.toString('utf8');
  try {
    return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  } catch (cause) {
    throw Object.assign(new Error('not JSON', { cause }), { type: 'entity.parse.failed' });
  }
}

async function wholeBody(request: Request): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const cut = (): void => {
      if (!request.readableEnded) {
        reject(Object.assign(new Error('the body was cut short'), { type: 'request.aborted' }));
      }
    };
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', cut).once('close', cut);
    if (request.destroyed) {
      cut();
    }
  });
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
