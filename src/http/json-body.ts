/** express.json as this project uses it: strict about what it parses, and with an answer as soon as a body is too large. */
import express, { type Request, type RequestHandler } from 'express';
import { verifyJson } from './json-shape.ts';

interface JsonOptions {
  readonly maxBytes: number;
  /** Media types. */
  readonly type: readonly string[];
  /** Whether it may be compressed. */
  readonly inflate: boolean;
  /** Whether it must be an object or an array. */
  readonly strict: boolean;
}

/** Calls back with what express.json calls back with; a body that is too large has the type `entity.too.large` and the limit. */
export function jsonParser({ maxBytes, type, inflate, strict }: JsonOptions): RequestHandler {
  const parse = express.json({ limit: maxBytes, type: [...type], inflate, strict, verify: verifyJson });
  return answeringAtOnce(parse, maxBytes);
}

/**
 * The parser reads a body to its end, however long, before it says that it is too large. Who is told at once may stop sending;
 * the rest is dropped, see slow-bodies.ts.
 */
export function answeringAtOnce(parse: RequestHandler, maxBytes: number): RequestHandler {
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
    if (lengthOf(request) > maxBytes) {
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

function lengthOf(request: Request): number {
  return Number(request.get('content-length') ?? 0);
}

function tooLarge(limit: number): Error {
  return Object.assign(new Error('the body is too large'), { status: 413, type: 'entity.too.large', limit });
}
