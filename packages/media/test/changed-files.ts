/** Files of which any bytes are changed, given to a reader of their index. */
import fc from 'fast-check';
import type { ByteSpans } from 'soundpost-outbound/ranges-spans';
import { expect } from 'vitest';
import { UnsupportedLayout } from '../src/sparse/mp4/boxes.ts';

interface Index {
  readonly lead: ByteSpans;
  readonly audioTracks: number;
  track(place: number): ByteSpans;
}

/**
 * 3,000 times up to six bytes: the reader understands the file, and names nothing outside of it, or throws UnsupportedLayout.
 * @param places of the bytes that mean something; default all
 */
export async function expectOddOrInside(
  file: Buffer,
  read: (changed: Buffer) => Promise<Index>,
  places: readonly number[] = [...file.keys()],
): Promise<void> {
  const change = fc.record({ at: fc.constantFrom(...places), to: fc.nat(255) });
  let understood = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const changed = Buffer.from(file);
      for (const { at, to } of changes) changed[at] = to;
      try {
        const index = await read(changed);
        understood += 1;
        const all = [index.lead, ...Array.from({ length: index.audioTracks }, (_, n) => index.track(n))];
        expect(Math.max(0, ...all.flatMap(({ ends }) => [...ends]))).toBeLessThanOrEqual(file.length);
      } catch (error) {
        expect(error).toBeInstanceOf(UnsupportedLayout);
      }
    }),
    { numRuns: 3000 },
  );
  expect(understood).toBeGreaterThan(100);
}
