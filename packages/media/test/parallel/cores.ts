/** Idle cores for an extraction, as many as a test wants. */
import type { ExtractOptions } from '../../src/extract.ts';

interface Cores {
  /** What was asked for last, and how much is not given back. */
  readonly held: { asked: number; now: number };
  readonly takeIdle: NonNullable<ExtractOptions['parallel']>['takeIdle'];
}

export function cores(count: number): Cores {
  const held = { asked: 0, now: 0 };
  return {
    held,
    takeIdle(most) {
      held.asked = most;
      const taken = Math.min(most, count);
      held.now += taken;
      return {
        count: taken,
        release: () => {
          held.now -= taken;
        },
      };
    },
  };
}
