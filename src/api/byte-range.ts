/** Conditional and partial downloads (RFC 9110, 13 and 14): what of a file a request gets. */
import type { ByteRange } from 'soundpost-kit/storage/storage';

/** One range in bytes; several at once or another unit are no match and get the whole file, which RFC 9110 14.2 allows. */
const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** The bytes that a Range field asks for; undefined: all of them. */
export function rangeOf(
  field: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = ONE_RANGE.exec(field ?? '') ?? [];
  if (first === '' && last === '') {
    return undefined;
  }
  // A suffix that is longer than the file is the whole file (RFC 9110 14.1.2).
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) {
    return undefined;
  }
  return start > end ? 'unsatisfiable' : { start, end };
}

/**
 * Whether an If-None-Match field names the entity, by the weak comparison (RFC 9110 13.1.2). A Cache-Control of the request
 * changes nothing about it: that is for caches, and `fetch` sends no-cache along with every such field.
 * @param etag with its quotes; undefined where the file has none
 */
export function isNoneMatch(field: string | undefined, etag: string | undefined): boolean {
  if (field === undefined || etag === undefined) {
    return false;
  }
  return field.trim() === '*' || field.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
