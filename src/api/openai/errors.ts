/**
 * Errors as OpenAI's clients read them: `{error: {message, type, param, code}}` (decisions F1;
 * platform.openai.com "Error codes"; `makeStatusError` and `shouldRetry` of the package openai).
 */
import type { Response } from 'express';
import { type ErrorCode, errorCatalogue, type ServiceError } from 'soundpost-contract/errors';
import type { ErrorDocs } from 'soundpost-kit/http/openapi/description';
import { z } from 'zod';
import type { Route } from '../route.ts';

/** Clients wait this long at most before they try again. */
const LONGEST_RETRY_AFTER_SECONDS = 60;

const codes: Readonly<Partial<Record<ErrorCode, string>>> = {
  UNAUTHORIZED: 'invalid_api_key',
  RATE_LIMITED: 'rate_limit_exceeded',
};
const codeOf = (code: ErrorCode): string => codes[code] ?? code.toLowerCase();

/** Elsewhere a failed job is a 200. Here, failures of the source are the caller's errors. */
function statusOf(code: ErrorCode): number {
  const { httpStatus, blame } = errorCatalogue[code];
  if (httpStatus !== 200) return httpStatus;
  return blame === 'service' ? 500 : 400;
}

function typeOf(status: number): string {
  if (status >= 500) return 'server_error';
  return status === 429 ? 'requests' : 'invalid_request_error';
}

/** Whether the same request may succeed within a minute. A job has been retried before it fails. */
export function isRetryable({ code, retryAfterSeconds = 0 }: ServiceError): boolean {
  const { httpStatus, retryable } = errorCatalogue[code];
  return retryable && httpStatus !== 200 && retryAfterSeconds <= LONGEST_RETRY_AFTER_SECONDS;
}

function sendOpenAiError(response: Response, error: ServiceError): void {
  const { code, message, details, retryAfterSeconds } = error;
  const status = statusOf(code);
  if (retryAfterSeconds !== undefined) {
    response.set('Retry-After', String(Math.max(1, Math.ceil(retryAfterSeconds))));
  }
  if (!isRetryable(error)) response.set('x-should-retry', 'false');
  const [, param = null] = /^(?:source\.)?(\w+)(?:\[[^\]]*\])*: /.exec(details ?? '') ?? [];
  response.set('Cache-Control', 'no-store');
  response.status(status).json({
    error: {
      message: details === undefined ? message : `${message}: ${details}`,
      type: typeOf(status),
      param: status === 400 ? param : null,
      code: codeOf(code),
    },
  });
}

const docs: ErrorDocs<ErrorCode> = {
  catalogue: errorCatalogue,
  waiting: ['RATE_LIMITED', 'QUEUE_FULL', 'SERVICE_UNAVAILABLE'],
  schema: (among) =>
    z.object({
      error: z.object({
        message: z.string(),
        type: z.string(),
        param: z.string().nullable().meta({ description: 'The field that is wrong, if it is one' }),
        code: z.enum(among.map(codeOf)),
      }),
    }),
  example: (code) => ({
    error: {
      message: errorCatalogue[code].meaning,
      type: typeOf(statusOf(code)),
      param: null,
      code: codeOf(code),
    },
  }),
};

export const openAiErrors: NonNullable<Route['errors']> = { send: sendOpenAiError, docs };
