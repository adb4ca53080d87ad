/** Deadlines in a process's own time. What they are for is in test/redis/busy-process and test/storage/deadline. */
import { expect, it } from 'vitest';
import { afterOwnTime } from '../src/own-time.ts';
import { bestMs, msOf } from './best-ms.ts';

const MS = 500;
const over = () => new Promise<void>((resolve) => void afterOwnTime(MS, resolve));

it('is over no earlier than it says', async () => {
  expect(await msOf(over)).toBeGreaterThan(MS - 5);
});

// With ten steps that are counted, and not their time, it takes 900 ms.
it('is hardly later where each turn of the event loop takes long', async () => {
  let isBusy = true;
  const turn = (): void => {
    for (const end = performance.now() + 45; performance.now() < end; );
    if (isBusy) setImmediate(turn);
  };
  turn();
  const took = await bestMs(700, () => msOf(over)).finally(() => {
    isBusy = false;
  });
  expect(took).toBeLessThan(700);
});

it('never comes once it was ended', async () => {
  let times = 0;
  const end = afterOwnTime(MS / 2, () => {
    times += 1;
  });
  end();
  await over();
  expect(times).toBe(0);
});
