/** Continuing a download where it broke (RFC 9110 §13.1.5, §14): only when the server can tell that the file is the same one. */
import type { IncomingHttpHeaders } from 'node:http';
import { headerOf } from './exchange.ts';

/** @returns what to send as If-Range: a strong ETag or a Last-Modified that counts as strong, or undefined. */
export function strongValidator(headers: IncomingHttpHeaders): string | undefined {
  const etag = headerOf(headers, 'etag');
  if (etag !== undefined) return /^"[\x21\x23-\x7e]*"$/.test(etag) ? etag : undefined;
  const lastModified = headerOf(headers, 'last-modified');
  if (lastModified === undefined) return undefined;
  // RFC 9110 §8.8.2.2: a date is strong when the answer was made at least a second after the change.
  const ageMs = Date.parse(headerOf(headers, 'date') ?? '') - Date.parse(lastModified);
  return ageMs >= 1_000 ? lastModified : undefined;
}

/** Whether a part may belong to the version that has this validator; a part that names none may. */
export function isOfVersion(headers: IncomingHttpHeaders, validator: string | undefined): boolean {
  const named = headerOf(headers, validator?.startsWith('"') ? 'etag' : 'last-modified');
  return named === undefined || named === validator;
}

interface ContentRange {
  readonly start: number;
  /** Exclusive, unlike in the header. */
  readonly end: number;
  readonly totalBytes: number | undefined;
}

/** `bytes 100-199/200` or `bytes 100-199/*`; undefined for anything else. */
export function parseContentRange(value: string | undefined): ContentRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(value ?? '');
  if (match === null) return undefined;
  const totalBytes = match[3] === '*' ? undefined : Number(match[3]);
  return { start: Number(match[1]), end: Number(match[2]) + 1, totalBytes };
}
