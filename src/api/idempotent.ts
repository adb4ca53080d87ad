/** POST with an Idempotency-Key (decisions A6): the same request gets the first answer again. */
import { createHash, type Hash } from 'node:crypto';
import type { Response } from 'express';
import { ServiceError } from '../contract/errors.ts';
import { IdempotencyHeaders } from '../contract/request-headers.ts';
import { beginIdempotent, type IdempotentRun, type KeptAnswer } from '../queue/idempotency.ts';
import { sendJson } from './answer.ts';
import { keyOf, type RouteContext } from './route.ts';

/** What a route answers when it succeeds. */
export interface Answer {
  readonly httpStatus: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly data: object;
  readonly message?: string;
}

/** A hash of a body that is too large to be kept, where a repetition will have to be told from another request. */
export function bodyHash({ request }: RouteContext): Hash | undefined {
  return request.get('idempotency-key') === undefined ? undefined : createHash('sha256');
}

const RETRY_IN_PROGRESS_SECONDS = 2;

/**
 * Does the work once for a key and a request, and answers.
 * @param fingerprint what has to be the same for a repetition: the body, and the path where it names something
 * @param work gets a seed to make ids from, the same one when it is repeated after a crash; undefined without a key
 * Throws INVALID_REQUEST, IDEMPOTENCY_MISMATCH or IDEMPOTENCY_IN_PROGRESS, or what the work throws.
 */
export async function answerOnce(
  context: RouteContext,
  fingerprint: string,
  work: (seed: string | undefined) => Promise<Answer>,
): Promise<void> {
  const run = await begin(context, fingerprint);
  if (run === 'answered') {
    return;
  }
  let answer: Answer;
  try {
    answer = await work(run?.seed);
  } catch (error) {
    // A refusal changed nothing. After anything else the record stays: a repetition finds out with the same ids.
    if (error instanceof ServiceError) {
      // While Redis is away the lease ends by itself, and the caller is to hear of the first error.
      await run?.abandon().catch(() => undefined);
    } else {
      // Not waited for: what failed may be Redis, and the caller is to be answered in time.
      run?.interrupt().catch(() => undefined);
    }
    throw error;
  }
  const { httpStatus, headers = {}, data, message } = answer;
  const body = { success: true, data, ...(message === undefined ? {} : { message }) };
  await run?.finish({ httpStatus, headers, body });
  sendJson(withHeaders(context.response, headers), httpStatus, body);
}

async function begin(
  context: RouteContext,
  fingerprint: string,
): Promise<IdempotentRun | 'answered' | undefined> {
  const { request, services } = context;
  const parsed = IdempotencyHeaders.safeParse({ 'Idempotency-Key': request.get('idempotency-key') });
  if (!parsed.success) {
    throw new ServiceError('INVALID_REQUEST', 'the Idempotency-Key must have 1 to 255 characters');
  }
  const key = parsed.data['Idempotency-Key'];
  if (key === undefined) {
    return undefined;
  }
  const route = `${request.method} ${request.route.path} ${fingerprint}`;
  const begun = await beginIdempotent(services.redis, keyOf(context).id, key, route);
  switch (begun.outcome) {
    case 'begun':
      return begun.run;
    case 'replay':
      replay(context, begun.answer);
      return 'answered';
    case 'mismatch':
      throw new ServiceError('IDEMPOTENCY_MISMATCH', 'this Idempotency-Key was used for another request');
    case 'in-progress':
      throw new ServiceError('IDEMPOTENCY_IN_PROGRESS', 'the first request with this key is still running', {
        retryAfterSeconds: RETRY_IN_PROGRESS_SECONDS,
      });
  }
}

function replay({ response }: RouteContext, { httpStatus, headers, body }: KeptAnswer): void {
  sendJson(withHeaders(response, { ...headers, 'Idempotent-Replayed': 'true' }), httpStatus, body);
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, value);
  }
  return response;
}
