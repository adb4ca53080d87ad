import { describe, expect, test } from 'vitest';
import { LEAST_PART_BYTES, MOST_OBJECT_BYTES, partBytesFor } from '../../src/storage/s3-parts.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const TIB = 1024 ** 4;

describe('the size of parts', () => {
  test.each([
    [0, 5 * MIB],
    [5 * GIB, 5 * MIB],
    // 10,000 parts of 5 MiB.
    [10_000 * 5 * MIB, 5 * MIB],
    [10_000 * 5 * MIB + 1, 6 * MIB],
    [100 * GIB, 11 * MIB],
    [5 * TIB, 525 * MIB],
  ])('of an object of %i bytes is %i', (objectBytes, partBytes) => {
    expect(partBytesFor(objectBytes)).toBe(partBytes);
  });

  test('is within the limits of S3 for every object', () => {
    for (let objectBytes = 1; objectBytes <= MOST_OBJECT_BYTES; objectBytes = Math.ceil(objectBytes * 1.37)) {
      const partBytes = partBytesFor(objectBytes);
      expect(Math.ceil(objectBytes / partBytes)).toBeLessThanOrEqual(10_000);
      expect(partBytes).toBeGreaterThanOrEqual(LEAST_PART_BYTES);
      expect(partBytes).toBeLessThanOrEqual(5 * GIB);
    }
  });

  test.each([5 * TIB + 1, -1, Number.NaN, Number.POSITIVE_INFINITY])(
    'there is none for %d bytes',
    (bytes) => {
      expect(() => partBytesFor(bytes)).toThrow(RangeError);
    },
  );
});
