/** Reads JSON bodies: strict about what it parses, and with an answer as soon as a body is too large. */

import { isUtf8 } from 'node:buffer';
import express, { type Request, type RequestHandler, type Response } from 'express';

interface JsonBody {
  readonly maxBytes: number;
  /** What a Content-Type may be, as `request.is` takes it. */
  readonly types: readonly string[];
  /** Whether it may be compressed. */
  readonly inflate: boolean;
  /** Whether it must be an object or an array, and a request without a body reads as `{}`; otherwise there has to be one. */
  readonly strict: boolean;
}

type BodyReader<Body> = (request: Request, response: Response) => Promise<Body>;

const BYTE_ORDER_MARK = '\u{FEFF}';

/**
 * The reader rejects with what body-parser rejects with: an error whose `type` names the fault, such as `entity.too.large` (then `limit` is `maxBytes`),
 * `charset.unsupported`, `entity.parse.failed`; besides `json.odd` (below) and `media-type.unsupported`.
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

/** The body as it was sent, for a signature over its bytes. */
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

/** Some clients say that their body has no bytes, and then no type either. */
function hasNoBody({ headers }: Request): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

/** As nearly every client sends it. The parser of Express decides first what else it might be, which takes longer than to parse it. */
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
        reject(fault('request.aborted', 400, 'the body was cut short'));
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
 * The parser reads a body to its end, however long, before it says that it is too large. Who is told at once may stop sending;
 * the rest is dropped, see slow-bodies.ts.
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
    // Not before: to listen is to begin reading.
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

/** Where in a body a fault of a schema is, such as `jobs[3].output.bitrate`; empty for the body itself. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}${text && '.'}${String(part)}`),
    '',
  );
}

// What a JSON text would become is looked at before it is parsed: a few megabytes of brackets or of
// empty objects take some hundred times their size as values, and no request of ours needs either.

const DEEPEST = 64;
const MOST_VALUES = 100_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACKET = 0x5d;
const CLOSING_BRACE = 0x7d;

/**
 * For `verify` of express.json. Throws an error of the type `charset.unsupported` for another encoding than UTF-8 (RFC 8259, 8.1),
 * and `json.odd`, with what is wrong as its message, where the text is not valid UTF-8, is nested deeper than 64 levels, or has
 * more than 100,000 values. Whether it is JSON is left to the parser.
 */
export function verifyJson(_request: unknown, _response: unknown, text: Buffer, encoding: string): void {
  if (encoding.toLowerCase() !== 'utf-8') {
    throw fault('charset.unsupported', 400, 'the body must be UTF-8');
  }
  if (!isUtf8(text)) {
    throw fault('json.odd', 400, 'the body is not valid UTF-8');
  }
  let depth = 0;
  let values = 1;
  for (let index = 0; index < text.length; index += 1) {
    switch (text[index]) {
      case QUOTE:
        index = endOfString(text, index);
        break;
      case CLOSING_BRACKET:
      case CLOSING_BRACE:
        depth -= 1;
        break;
      case OPENING_BRACKET:
      case OPENING_BRACE:
        depth += 1;
        values += 1;
        break;
      case COMMA:
        values += 1;
        break;
      default:
    }
    if (depth > DEEPEST || values > MOST_VALUES) {
      throw fault(
        'json.odd',
        400,
        `the body may be nested ${DEEPEST} levels deep and have ${MOST_VALUES} values at most`,
      );
    }
  }
}

/** Where the closing quote is; the end of the text where there is none. A long string is searched, and walked only where it has escapes. */
function endOfString(text: Buffer, start: number): number {
  const quote = text.indexOf(QUOTE, start + 1);
  if (quote === -1 || text[quote - 1] !== BACKSLASH) {
    return quote === -1 ? text.length : quote;
  }
  let index = start + 1;
  while (index < text.length && text[index] !== QUOTE) {
    index += text[index] === BACKSLASH ? 2 : 1;
  }
  return index;
}
