/** The only place that turns errors into HTTP answers; the catalogue gives the status. */

import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import type { Logger } from 'soundpost-base/logger';
import { STATUS_CODES } from 'soundpost-base/node-http';
import {
  GatewayError,
  type GatewayErrorAnswer,
  type GatewayErrorCode,
  gatewayErrorCatalogue,
} from 'soundpost-contract/gateway-errors';
import { fieldPath, jsonReader } from 'soundpost-kit/http/json-body';
import { awayReason, isRedisAway } from 'soundpost-kit/observe/away';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { UnreadableRecord } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { CallerGone } from '../outgoing.ts';
import { requestId } from './request-log.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Not for the operator to fix. */
const EXPECTED: ReadonlySet<GatewayErrorCode> = new Set(['unsupported', 'standby']);

interface ErrorAnswerOptions {
  readonly logger: Logger;
  /** Whether Redis answers; failures while it does not are the service's. */
  readonly redisReady: () => boolean;
  readonly observer?: Observer | undefined;
}

export function errorAnswer({ logger, redisReady, observer }: ErrorAnswerOptions): ErrorRequestHandler {
  return (error, request, response, next) => {
    if (error instanceof CallerGone) return;
    const shown = toGatewayError(error, redisReady());
    const { httpStatus } = gatewayErrorCatalogue[shown.code];
    if (shown.code === 'service_unavailable') {
      observer?.partAway(awayReason(shown.cause) ?? 'redis_unreachable');
    }
    if (httpStatus >= 500 && !EXPECTED.has(shown.code)) {
      logger.error({ err: error, requestId: requestId(request), code: shown.code }, 'request failed');
    }
    if (response.headersSent) {
      // Too late for an answer: express cuts the connection, so that it is not taken for complete.
      return next(error);
    }
    if (shown.retryAfterSeconds !== undefined) {
      response.setHeader('Retry-After', shown.retryAfterSeconds);
    }
    const body: GatewayErrorAnswer = {
      status: httpStatus,
      error: STATUS_CODES[httpStatus] ?? 'Error',
      code: shown.code,
      requestId: requestId(request),
      ...(shown.retryable === false && { retryable: false }),
      response: { message: [...shown.messages] },
    };
    response.setHeader('Cache-Control', 'no-store');
    response.status(httpStatus).json(body);
  };
}

export const notFound: RequestHandler = () => {
  throw new GatewayError('not_found', 'nothing was found at this path');
};

/** Ends a route: the path exists, the method does not. */
export function otherMethods(allowed: string): RequestHandler {
  return (_request, response) => refuseMethod(response, allowed);
}

export function refuseMethod(response: Response, allowed: string): never {
  response.setHeader('Allow', allowed);
  throw new GatewayError('method_not_allowed', `this path takes ${allowed}`);
}

/** Errors of express and body-parser: `type` names the fault, `status` is the client's. */
const HttpError = z.object({
  status: z.int().min(400).max(499),
  type: z.string().optional(),
  message: z.string(),
  /** Largest body, bytes. */
  limit: z.number().default(0),
});

function toGatewayError(error: unknown, redisReady: boolean): GatewayError {
  if (error instanceof UnreadableRecord) {
    return new GatewayError('not_connected', `its record cannot be read: ${error.message}`);
  }
  if (error instanceof GatewayError) {
    return error;
  }
  if (error instanceof z.ZodError) {
    return badRequest(error);
  }
  const http = HttpError.safeParse(error);
  if (http.success) {
    return bodyFault(http.data);
  }
  if (!redisReady || isRedisAway(error)) {
    return new GatewayError('service_unavailable', 'the gateway cannot reach its database', {
      retryAfterSeconds: 5,
      cause: error,
    });
  }
  return new GatewayError('internal_error', 'something went wrong inside the gateway', { cause: error });
}

function bodyFault({ type, message, limit }: z.output<typeof HttpError>): GatewayError {
  if (type === 'entity.too.large') {
    return new GatewayError(
      'payload_too_large',
      `body: JSON may have ${inWords(limit)} at most here; send larger audio as a file`,
    );
  }
  if (type === 'media-type.unsupported') {
    return new GatewayError('unsupported_media_type', 'Content-Type: must be application/json');
  }
  if (type === 'charset.unsupported' || type === 'encoding.unsupported') {
    return new GatewayError('unsupported_media_type', 'body: must be UTF-8, and gzip or plain');
  }
  if (type === 'json.odd') {
    return new GatewayError('bad_request', `body: ${message}`);
  }
  return new GatewayError('bad_request', 'body: cannot be read; it must be a JSON object');
}

export function inWords(bytes: number): string {
  return bytes < MIB ? `${bytes / KIB} KiB` : `${bytes / MIB} MiB`;
}

/** One message for each fault, naming its field. */
export function badRequest(error: z.ZodError): GatewayError {
  const messages = error.issues.map(({ path, message }) => `${fieldPath(path) || 'body'}: ${message}`);
  return new GatewayError('bad_request', messages, { cause: error });
}

// JSON bodies of requests.

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
