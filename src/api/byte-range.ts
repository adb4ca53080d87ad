/** Conditional and partial downloads (RFC 9110, 13 and 14). */
import type { ByteRange } from 'soundpost-kit/storage/storage';

/** One byte range. Several ranges or another unit get the whole file (RFC 9110 14.2). */
const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** The bytes that a Range field selects; undefined means all. */
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
 * Whether If-None-Match names the entity, by weak comparison (RFC 9110 13.1.2). The request's
 * Cache-Control is ignored: it is meant for caches, and `fetch` adds no-cache to every such field.
 * @param etag with its quotes; undefined where the file has none
 */
export function isNoneMatch(field: string | undefined, etag: string | undefined): boolean {
  if (field === undefined || etag === undefined) {
    return false;
  }
  return field.trim() === '*' || field.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
