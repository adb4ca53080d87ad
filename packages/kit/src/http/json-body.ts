/** Reads JSON bodies: strictly, and with an answer as soon as a body is too large. */

import { isUtf8 } from 'node:buffer';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { checkShape, OddJson } from 'soundpost-base/json';

interface JsonBody {
  readonly maxBytes: number;
  /** Accepted Content-Types, as for `request.is`. */
  readonly types: readonly string[];
  /** Whether it may be compressed. */
  readonly inflate: boolean;
  /** Requires an object or array; no body reads as `{}`. If false, a body is required. */
  readonly strict: boolean;
}

type BodyReader<Body> = (request: Request, response: Response) => Promise<Body>;

const BYTE_ORDER_MARK = '\u{FEFF}';

/**
 * Rejects with body-parser's errors by `type`, such as `entity.too.large` (`limit`: `maxBytes`),
 * `charset.unsupported` or `entity.parse.failed`; also `json.odd` and `media-type.unsupported`.
 */
export function jsonReader({ maxBytes, types, inflate, strict }: JsonBody): BodyReader<unknown> {
  const parse = answeringAtOnce(
    express.json({ limit: maxBytes, type: () => true, inflate, strict, verify: verifyJson }),
    maxBytes,
  );
  return async (request, response) => {
    if (strict && hasNoBody(request)) {
      return {};
    }
    if (!request.is([...types])) {
      throw fault('media-type.unsupported', 415, 'the body is of another type');
    }
    if (isPlain(request, maxBytes)) {
      return parsePlain(await wholeBody(request), strict);
    }
    await run(parse, request, response);
    return request.body;
  };
}

/** The body as sent, for a signature over its bytes. */
export function textReader(maxBytes: number): BodyReader<string> {
  const parse = answeringAtOnce(
    express.text({ limit: maxBytes, type: () => true, inflate: false }),
    maxBytes,
  );
  return async (request, response) => {
    await run(parse, request, response);
    return typeof request.body === 'string' ? request.body : '';
  };
}

/** Some clients send an empty body without a type. */
function hasNoBody({ headers }: Request): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** The usual body: Express' parser takes longer to rule out the others than to parse it. */
function isPlain({ headers }: Request, maxBytes: number): boolean {
  const length = Number(headers['content-length']);
  return (
    headers['content-type'] === 'application/json' &&
    headers['content-encoding'] === undefined &&
    length > 0 &&
    length <= maxBytes
  );
}

function parsePlain(bytes: Buffer, strict: boolean): unknown {
  verifyJson(undefined, undefined, bytes, 'utf-8');
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  } catch (cause) {
    throw Object.assign(fault('entity.parse.failed', 400, 'not JSON'), { cause });
  }
  if (strict && (typeof value !== 'object' || value === null)) {
    throw fault('entity.parse.failed', 400, 'neither an object nor an array');
  }
  return value;
}

async function wholeBody(request: Request): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const cut = (): void => {
      if (!request.readableEnded) {
        reject(fault('request.aborted', 400, 'the body is incomplete'));
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

async function run(parser: RequestHandler, request: Request, response: Response): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    parser(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
  });
}

/**
 * The parser reads a body to its end before it reports that it is too large. An early answer lets
 * the sender stop; the rest is dropped, see slow-bodies.ts.
 */
function answeringAtOnce(parse: RequestHandler, maxBytes: number): RequestHandler {
  return (request, response, next) => {
    let isDone = false;
    const done = (error?: unknown): void => {
      if (!isDone) {
        isDone = true;
        request.off('data', count);
        next(error);
      }
    };
    let receivedBytes = 0;
    const count = (chunk: Buffer): void => {
      receivedBytes += chunk.length;
      if (receivedBytes > maxBytes) {
        done(tooLarge(maxBytes));
      }
    };
    if (Number(request.get('content-length') ?? 0) > maxBytes) {
      done(tooLarge(maxBytes));
      return;
    }
    parse(request, response, done);
    // Not earlier: a listener starts the reading.
    if (!isDone && !request.complete) {
      request.on('data', count);
    }
  };
}

function tooLarge(limit: number): Error {
  return Object.assign(fault('entity.too.large', 413, 'the body is too large'), { limit });
}

function fault(type: string, status: number, message: string): Error {
  return Object.assign(new Error(message), { status, type });
}

/** The path of a schema's fault, such as `jobs[3].output.bitrate`; empty for the body itself. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}${text && '.'}${String(part)}`),
    '',
  );
}

/**
 * For `verify` of express.json. Throws `charset.unsupported` for any encoding but UTF-8 (RFC 8259,
 * 8.1), and `json.odd` for invalid UTF-8, more than 64 levels, or more than 100,000 values. It
 * does not check whether the text is JSON.
 */
export function verifyJson(_request: unknown, _response: unknown, text: Buffer, encoding: string): void {
  if (encoding.toLowerCase() !== 'utf-8') {
    throw fault('charset.unsupported', 400, 'the body must be UTF-8');
  }
  if (!isUtf8(text)) {
    throw fault('json.odd', 400, 'the body is not valid UTF-8');
  }
  try {
    checkShape(text);
  } catch (cause) {
    if (!(cause instanceof OddJson)) throw cause;
    throw Object.assign(fault('json.odd', 400, `the body is too large as JSON: ${cause.message}`), { cause });
  }
}
