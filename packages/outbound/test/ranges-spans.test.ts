/** Stretches of a file, put together and taken apart. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ByteSpan, type ByteSpans, spansOf, united, without } from '../src/ranges-spans.ts';

const SIZE = 60;
const anySpans = fc
  .array(fc.record({ start: fc.nat(SIZE), bytes: fc.nat(9) }), { maxLength: 12 })
  .map((list): ByteSpan[] => list.map(({ start, bytes }) => ({ start, end: start + bytes })));

const bytesIn = (list: readonly ByteSpan[]) =>
  new Set(list.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, nth) => start + nth)));

/** That they are sorted and disjoint, and which bytes they hold. */
function bytesOfSpans({ starts, ends }: ByteSpans): Set<number> {
  const list = [...starts].map((start, place) => ({ start, end: ends[place] ?? 0 }));
  for (const [place, { start, end }] of list.entries()) {
    expect(start).toBeLessThan(end);
    expect(start).toBeGreaterThan(list[place - 1]?.end ?? -1);
  }
  return bytesIn(list);
}

describe('any stretches', () => {
  it('together hold the bytes of each', () => {
    fc.assert(
      fc.property(anySpans, (list) => {
        expect(bytesOfSpans(spansOf(list))).toEqual(bytesIn(list));
      }),
    );
    fc.assert(
      fc.property(anySpans, anySpans, (one, other) => {
        const bytes = bytesOfSpans(united(spansOf(one), spansOf(other)));
        expect(bytes).toEqual(bytesIn([...one, ...other]));
      }),
    );
  });

  it('without others hold what is not in those', () => {
    fc.assert(
      fc.property(anySpans, anySpans, (one, other) => {
        const taken = bytesIn(other);
        const bytes = bytesOfSpans(without(spansOf(one), spansOf(other)));
        expect(bytes).toEqual(new Set([...bytesIn(one)].filter((byte) => !taken.has(byte))));
      }),
    );
  });
});
