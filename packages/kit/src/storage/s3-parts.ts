/** How an object is cut into parts (Amazon S3 User Guide, "Amazon S3 multipart upload limits"). */

const MIB = 1024 * 1024;
/** Every part but the last one has at least so much. */
export const LEAST_PART_BYTES = 5 * MIB;
const MOST_PARTS = 10_000;
/** The largest object, bytes. */
export const MOST_OBJECT_BYTES = 5 * 1024 ** 4;

/**
 * Size of the parts of an object of that size, bytes: the least that makes do with 10,000 parts, in whole MiB.
 * @throws RangeError when no S3 server could hold the object
 */
export function partBytesFor(objectBytes: number): number {
  if (!(objectBytes >= 0 && objectBytes <= MOST_OBJECT_BYTES)) {
    throw new RangeError(
      `an object of ${objectBytes} bytes does not fit S3, which ends at 5 TiB; lower MAX_INPUT_BYTES`,
    );
  }
  const wholeMib = Math.ceil(objectBytes / MOST_PARTS / MIB) * MIB;
  return Math.max(LEAST_PART_BYTES, wholeMib);
}
