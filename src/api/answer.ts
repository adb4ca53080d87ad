/** The envelope that every JSON answer wears (audio-extraction.md "Response envelope"). */
import type { Response } from 'express';
import { errorCatalogue, type ServiceError } from 'soundpost-contract/errors';

export function sendData(response: Response, httpStatus: number, data: object, message?: string): void {
  sendJson(response, httpStatus, { success: true, data, ...(message === undefined ? {} : { message }) });
}

/** @param httpStatus where a route's own rule differs from the catalogue's row, such as 200 of a failed job's status */
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

/** As Express's own, which looks besides for validators and encodings that no answer of ours has. */
export function sendJson(response: Response, httpStatus: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = httpStatus;
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  const bytes = Buffer.byteLength(text);
  response.setHeader('Content-Length', bytes);
  // Text of nothing but ASCII is the same in both, and need not be encoded.
  response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}
