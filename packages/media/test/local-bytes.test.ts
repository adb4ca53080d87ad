import { expect, it } from 'vitest';
import { LocalBytes } from '../src/local-bytes.ts';

// Offsets of 64 bits, and what is computed from them: Node refuses to read at such places.
it.each([2 ** 56, 2 ** 64, -1, Number.NaN])('a file has no bytes at %d', async (position) => {
  await using file = await LocalBytes.open(import.meta.filename);
  expect(await file.at(position, 24)).toHaveLength(0);
  expect((await file.at(0, 6)).toString()).toBe('import');
});
