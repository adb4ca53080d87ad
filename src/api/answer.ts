/** The envelope that every JSON answer wears (audio-extraction.md "Response envelope"). */
import type { Response } from 'express';
import { errorCatalogue, type ServiceError } from '../contract/errors.ts';

export function sendData(response: Response, httpStatus: number, data: object, message?: string): void {
  response.status(httpStatus).json({ success: true, data, ...(message === undefined ? {} : { message }) });
}

/** @param httpStatus where a route's own rule differs from the catalogue's row, such as 200 of a failed job's status */
export function sendError(response: Response, error: ServiceError, httpStatus?: number): void {
  if (error.retryAfterSeconds !== undefined) {
    response.set('Retry-After', String(Math.max(1, Math.ceil(error.retryAfterSeconds))));
  }
  response.set('Cache-Control', 'no-store');
  response
    .status(httpStatus ?? errorCatalogue[error.code].httpStatus)
    .json({ success: false, error: error.toBody() });
}
