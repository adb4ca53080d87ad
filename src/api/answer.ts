/** Response envelope (audio-extraction.md) and replay for an Idempotency-Key (decisions A6). */

import { createHash, type Hash } from 'node:crypto';
import type { Response } from 'express';
import { type ErrorBody, errorCatalogue, ServiceError } from 'soundpost-contract/errors';
import { IdempotencyHeaders } from 'soundpost-contract/request-headers';
import { hashOf, type IdempotencyPolicy, type KeptAnswer, once } from 'soundpost-kit/http/idempotency';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';
import { keyOf, type RouteContext } from './route.ts';

export function sendData(response: Response, httpStatus: number, data: object, message?: string): void {
  sendJson(response, httpStatus, { success: true, data, ...(message === undefined ? {} : { message }) });
}

/** @param httpStatus where a route's rule differs from the error catalogue */
export function sendError(response: Response, error: ServiceError, httpStatus?: number): void {
  if (error.retryAfterSeconds !== undefined) {
    response.set('Retry-After', String(Math.max(1, Math.ceil(error.retryAfterSeconds))));
  }
  response.set('Cache-Control', 'no-store');
  sendJson(response, httpStatus ?? errorCatalogue[error.code].httpStatus, {
    success: false,
    error: error.toBody(),
  });
}

/** Reports a stored failure: the request itself succeeded. */
export function sendFailure(response: Response, error: ErrorBody): void {
  response.set('Cache-Control', 'no-store');
  sendJson(response, 200, { success: false, error });
}

/** Like Express's own, without the validators and encodings that our answers never have. */
function sendJson(response: Response, httpStatus: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = httpStatus;
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  const bytes = Buffer.byteLength(text);
  response.setHeader('Content-Length', bytes);
  // ASCII text is the same in both encodings, and latin1 needs no encoding step.
  response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}

/** What a route answers when it succeeds. */
export interface Answer {
  readonly httpStatus: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly data: object;
  readonly message?: string;
}

/** Identifies a body too large to keep, if the request has an Idempotency-Key. */
export function bodyHash({ request }: RouteContext): Hash | undefined {
  return request.get('idempotency-key') === undefined ? undefined : createHash('sha256');
}

const StoredAnswer = z.object({
  httpStatus: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.unknown(),
});
type StoredAnswer = z.infer<typeof StoredAnswer>;

/** A refusal changed nothing. Any other error keeps the record: a retry gets the same ids. */
const policy: IdempotencyPolicy = {
  isUndone: (error) => error instanceof ServiceError,
  refusal: (reason, retryAfterSeconds) =>
    reason === 'mismatch'
      ? new ServiceError(
          'IDEMPOTENCY_MISMATCH',
          'this Idempotency-Key was already used for a different request',
        )
      : new ServiceError(
          'IDEMPOTENCY_IN_PROGRESS',
          'the first request with this Idempotency-Key is still running',
          {
            retryAfterSeconds,
          },
        ),
};

/**
 * A request that is being done; without an Idempotency-Key there is no seed and nothing to keep.
 */
export interface AnswerTurn {
  /** For ids: the same after a crash. */
  readonly seed: string | undefined;
  /** For the script that ends the work. */
  keep(answer: Answer): KeptAnswer | undefined;
}

const UNKEYED: AnswerTurn = { seed: undefined, keep: () => undefined };

/**
 * Does the work once for each key and request, and answers.
 * @param fingerprint what a retry must match: the body, and a resource's path
 * @param answerInstead gets the answer that is kept; returns whether it has sent another one
 * Throws INVALID_REQUEST, IDEMPOTENCY_MISMATCH, IDEMPOTENCY_IN_PROGRESS, or what the work throws.
 */
export async function answerOnce(
  context: RouteContext,
  fingerprint: string,
  work: (turn: AnswerTurn) => Promise<Answer>,
  answerInstead: (answer: StoredAnswer) => Promise<boolean> = async () => false,
): Promise<void> {
  const { request, response, services } = context;
  const finish = async (answer: StoredAnswer): Promise<void> => {
    if (!(await answerInstead(answer))) send(context, answer);
  };
  const key = idempotencyKeyOf(context);
  if (key === undefined) {
    return finish(stored(await work(UNKEYED)));
  }
  const keyed = {
    record: ownKey('idempotency', keyOf(context).id, hashOf(key)),
    fingerprint: hashOf(`${request.method} ${request.route.path} ${fingerprint}`),
  };
  const { answer, replayed } = await once<StoredAnswer>(
    services.redis,
    keyed,
    policy,
    async ({ seed, keep }) => stored(await work({ seed, keep: (made) => keep(stored(made)) })),
  );
  if (replayed) {
    response.setHeader('Idempotent-Replayed', 'true');
  }
  await finish(StoredAnswer.parse(answer));
}

function idempotencyKeyOf({ request }: RouteContext): string | undefined {
  const parsed = IdempotencyHeaders.safeParse({ 'Idempotency-Key': request.get('idempotency-key') });
  if (!parsed.success) {
    throw new ServiceError('INVALID_REQUEST', 'the Idempotency-Key must have 1 to 255 characters');
  }
  return parsed.data['Idempotency-Key'];
}

function stored({ httpStatus, headers = {}, data, message }: Answer): StoredAnswer {
  return {
    httpStatus,
    headers,
    body: { success: true, data, ...(message === undefined ? {} : { message }) },
  };
}

function send({ response }: RouteContext, { httpStatus, headers, body }: StoredAnswer): void {
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, value);
  }
  sendJson(response, httpStatus, body);
}
