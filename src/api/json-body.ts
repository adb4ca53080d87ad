/** A request's JSON body (decisions A1): up to 256 KiB, plain, of the one type. */
import { jsonReader, textReader } from 'soundpost-kit/http/json-body';

const MAX_BYTES = 256 * 1024;

export const readJson = jsonReader({
  maxBytes: MAX_BYTES,
  types: ['application/json'],
  inflate: false,
  strict: false,
});
export const readText = textReader(MAX_BYTES);
