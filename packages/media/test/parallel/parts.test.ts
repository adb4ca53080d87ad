/** Where an output is cut for several cores: pure sums, over more cores than a test has. */
import { expect, it } from 'vitest';
import { cut, mostParts, PART_LENGTHS, splicingOf } from '../../src/parallel/parts.ts';
import type { OutputPlan } from '../../src/plan.ts';

const RATE = 48_000;
const planOf = (expectedSeconds: number) =>
  ({
    formatName: 'mp3',
    copy: null,
    encode: { sampleRate: RATE, bitrateKbps: 192 },
    expectedSeconds,
  }) as OutputPlan;

const cases = [310, 620, 1500, 3600, 9600, 21_600].flatMap((seconds) =>
  [0, 1, 2].map((beside) => ({ seconds, beside })),
);

it.each(cases)(
  '$seconds s with $beside beside, over 2 to 64 cores: nowhere do three parts overlap',
  ({ seconds, beside }) => {
    const plan = planOf(seconds);
    const splicing = splicingOf(plan);
    if (splicing === null) throw new Error('MP3 is spliced');
    for (let count = 2; count <= Math.min(64, mostParts(plan)); count += 1) {
      const parts = cut(plan, splicing, count, PART_LENGTHS, beside);
      expect(parts[0]?.startSample).toBe(0);
      expect(parts.at(-1)?.endSample).toBeNull();
      for (const [nth, { startSample }] of parts.entries()) {
        const next = parts[nth + 1]?.startSample ?? seconds * RATE;
        // Where it meets the one after it, it has left the one before.
        expect((next - startSample) / RATE).toBeGreaterThan(PART_LENGTHS.overlapSeconds);
      }
    }
  },
);

it.each([
  ['lossless formats', { formatName: 'flac' }],
  ['AAC', { formatName: 'm4a' }],
  ['Opus at a bitrate for speech', { formatName: 'opus', encode: { sampleRate: RATE, bitrateKbps: 64 } }],
  ['a copy', { copy: { maxKbps: null } }],
  ['an output that is too short', { expectedSeconds: 299 }],
])('%s are made in one', (_what, odd) => {
  expect(mostParts(planOf(3600))).toBeGreaterThan(2);
  expect(mostParts({ ...planOf(3600), ...odd } as OutputPlan)).toBe(1);
});

it('of two parts the second is shorter by what its run decodes, and by what it makes besides', () => {
  const plan = planOf(600);
  const splicing = splicingOf(plan);
  if (splicing === null) throw new Error('MP3 is spliced');
  const startOf = (beside: number): number =>
    (cut(plan, splicing, 2, PART_LENGTHS, beside)[1]?.startSample ?? 0) / RATE;
  expect(startOf(0)).toBeGreaterThan(285);
  expect(startOf(0)).toBeLessThan(300);
  expect(startOf(1)).toBeGreaterThan(startOf(0) + 5);
});
