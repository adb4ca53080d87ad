/** The rig itself: a stand without a fault has nothing to complain of, and each kind of damage is noticed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { Stand } from './stand.ts';

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.start({ workers: 2 });
});
afterAll(() => stand.close());

it('without a fault everything holds', async () => {
  await stand.warmUp();
  await Promise.all(
    ['mp3', 'flac', 'wav', 'opus'].map((format) =>
      stand.submit({ output: { format }, webhook: true, voice: true }),
    ),
  );
  await stand.submit({ source: stand.web.url('missing.mp4'), webhook: true, voice: true });
  expect(await violations(stand)).toEqual([]);
  expect(stand.hooks.calls.length).toBeGreaterThan(8);
});
