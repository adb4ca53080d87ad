/** Deadlines in a process's own time, by a clock that the test moves. What they are for is in packages/kit/test/redis/busy-process and packages/kit/test/storage/deadline. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { afterOwnTime } from '../src/own-time.ts';

const MS = 500;
let nowMs = 0;
let look: (() => void) | undefined;

beforeEach(() => {
  nowMs = 0;
  look = undefined;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  vi.spyOn(globalThis, 'setInterval').mockImplementation((callback) => {
    look = callback;
    return 0 as unknown as NodeJS.Timeout;
  });
  vi.spyOn(globalThis, 'clearInterval').mockImplementation(() => {
    look = undefined;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** When it is over, where each turn of the event loop takes so long. */
async function overAfter(turnMs: number, standsStillMs = 0): Promise<number> {
  let isOver = false;
  afterOwnTime(MS, () => {
    isOver = true;
  });
  nowMs += standsStillMs;
  look?.();
  while (!isOver) {
    nowMs += turnMs;
    look?.();
    await turn();
  }
  return nowMs;
}

it('is over when it says', async () => {
  expect(await overAfter(MS / 10)).toBe(MS);
});

// With ten steps that are counted, and not their time, it takes 900 ms.
it('is hardly later where each turn of the event loop takes long', async () => {
  expect(await overAfter(90)).toBe(540);
});

it('counts two steps at most of a time in which the process stood still', async () => {
  expect(await overAfter(MS / 10, 60_000)).toBe(60_000 + MS - 2 * (MS / 10));
});

it('never comes once it was ended', async () => {
  let times = 0;
  const end = afterOwnTime(MS, () => {
    times += 1;
  });
  end();
  nowMs += MS;
  look?.();
  await turn();
  expect(times).toBe(0);
});
