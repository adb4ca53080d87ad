/** A lease ends by its holder's own clock, to the millisecond, and whoever holds it is told. */
import { expect, it } from 'vitest';
import { LeaseClock, thisMoment } from '../src/lease/lease.ts';

// Broken by hand (packages/chat/src/lease/lease.ts): a timer that is set once. It was early for some 500 of 4,000, and their holders were never told.
it('tells each holder once the lease has ended, and not before', async () => {
  for (let turn = 0; turn < 20; turn += 1) {
    const told = await Promise.all(Array.from({ length: 200 }, (_, index) => end(3 + index / 97)));
    expect(told).toEqual(told.map(() => false));
  }
});

/** @returns whether the lease lasted when its end was told */
function end(forMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const clock = new LeaseClock(forMs, () => resolve(clock.lasts()));
    clock.extend(thisMoment());
    // The clock keeps no process alive.
    setTimeout(() => resolve(true), forMs + 2000).unref();
  });
}

it('counts from before the question, so that a late answer is worth less', () => {
  const clock = new LeaseClock(100, () => undefined);
  const asked = thisMoment();
  clock.extend({ monotonic: asked.monotonic - 200, wall: asked.wall });
  expect(clock.lasts()).toBe(false);
});

it('ends by the wall clock alone, for a machine whose other clock stood still while it slept', () => {
  const clock = new LeaseClock(100, () => undefined);
  const asked = thisMoment();
  clock.extend({ monotonic: asked.monotonic, wall: asked.wall - 200 });
  expect(clock.lasts()).toBe(false);
});
