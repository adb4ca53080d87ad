/**
 * Deadlines in a process's own time, by a clock that the test moves. What they are for is in
 * test/redis/busy-process and packages/kit/test/storage/deadline.
 */
import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deadline, untilAborted, within } from '../src/deadline.ts';

const MS = 500;
const STEP_MS = MS / 10;
const LATE = new Error('too late');
const reason = () => LATE;

/** Others in this process set timers too, now and then: a deadline's are told by who sets them. */
const isOfDeadline = (): boolean => new Error('where').stack?.includes('src/deadline.ts') ?? false;
const others = { set: globalThis.setTimeout, clear: globalThis.clearTimeout };

let nowMs = 0;
/** The one timer that a deadline has set. */
let timer: { readonly look: () => void; readonly dueMs: number } | undefined;

beforeEach(() => {
  nowMs = 0;
  timer = undefined;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((look: () => void, ms: number) => {
    if (!isOfDeadline()) return others.set(look, ms);
    timer = { look, dueMs: nowMs + ms };
    return timer;
  }) as unknown as typeof setTimeout);
  vi.spyOn(globalThis, 'clearTimeout').mockImplementation((cleared) => {
    if ((cleared as unknown) === timer) timer = undefined;
    else if (!isOfDeadline()) others.clear(cleared);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The event loop's next turn, which begins that much later. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  const due = timer;
  if (due !== undefined && due.dueMs <= nowMs) {
    timer = undefined;
    due.look();
  }
  await turn();
}

const isPending = async (work: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([work.catch(() => undefined), turn('pending')])) === 'pending';

describe('a deadline', () => {
  /** When it is over, where each turn of the event loop takes so long. */
  async function overAfter(turnMs: number, standsStillMs = 0): Promise<number> {
    using limit = deadline(MS);
    if (standsStillMs > 0) await pass(standsStillMs);
    while (!limit.signal.aborted) await pass(turnMs);
    return nowMs;
  }

  it('is over when it says', async () => {
    expect(await overAfter(STEP_MS)).toBe(MS);
  });

  it('is over when it says where a timer was early', async () => {
    using limit = deadline(MS);
    timer = timer && { ...timer, dueMs: STEP_MS - 10 };
    await pass(STEP_MS - 10);
    while (!limit.signal.aborted) await pass(1);
    expect(nowMs).toBe(MS);
  });

  // With ten steps that are counted, and not their time, it takes 900 ms.
  it('is hardly later where each turn of the event loop takes long', async () => {
    expect(await overAfter(90)).toBe(540);
  });

  it('counts two steps at most of a time in which the process stood still', async () => {
    expect(await overAfter(STEP_MS, 60_000)).toBe(60_000 + MS - 2 * STEP_MS);
  });

  it('comes after what is answered in its turn', async () => {
    using limit = deadline(0);
    nowMs = 1;
    timer?.look();
    expect(limit.signal.aborted).toBe(false);
    await turn();
    expect(limit.signal.aborted).toBe(true);
  });

  it('aborts with a TimeoutError, or what it is told', async () => {
    const reasonOf = async (options?: { signal?: AbortSignal; reason?: () => unknown }): Promise<unknown> => {
      using limit = deadline(0, options);
      await pass(1);
      return limit.signal.reason;
    };
    expect(await reasonOf()).toMatchObject({ name: 'TimeoutError' });
    expect(await reasonOf({ reason })).toBe(LATE);
  });

  it("aborts with the caller's signal and its reason, and leaves no timer", () => {
    const caller = new AbortController();
    using limit = deadline(MS, { signal: caller.signal, reason });
    caller.abort('not wanted any more');
    expect(limit.signal.reason).toBe('not wanted any more');
    expect(timer).toBeUndefined();
  });

  it('is over at once where the caller gave up before', () => {
    using limit = deadline(MS, { signal: AbortSignal.abort('never wanted'), reason });
    expect(limit.signal.reason).toBe('never wanted');
    expect(timer).toBeUndefined();
  });

  it('leaves nothing behind, and never comes, once it was disposed of', async () => {
    const caller = new AbortController();
    const ended = deadline(MS, { signal: caller.signal });
    ended[Symbol.dispose]();
    expect(timer).toBeUndefined();
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
    caller.abort();

    const due = deadline(0);
    nowMs = 1;
    timer?.look();
    due[Symbol.dispose]();
    await turn();
    expect([ended.signal.aborted, due.signal.aborted]).toEqual([false, false]);
  });

  it('begins anew with each progress, also with that of the turn in which it is due', async () => {
    using limit = deadline(MS);
    for (let left = 9; left > 0; left -= 1) await pass(STEP_MS);
    limit.renew();
    for (let left = 9; left > 0; left -= 1) await pass(STEP_MS);
    nowMs += STEP_MS;
    timer?.look();
    limit.renew();
    await turn();
    expect(limit.signal.aborted).toBe(false);
    while (!limit.signal.aborted) await pass(STEP_MS);
    expect(nowMs).toBe(9 * STEP_MS + MS + MS);
  });
});

describe('work within a time', () => {
  it('is what it comes to, and leaves no timer', async () => {
    expect(await within(MS, async () => 'made')).toBe('made');
    await expect(within(MS, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    const throws = (): never => {
      throw new Error('broken at once');
    };
    await expect(within(MS, throws)).rejects.toThrow('broken at once');
    expect(timer).toBeUndefined();
  });

  it('is told when it is given up', async () => {
    let told: unknown;
    const heeds = (signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          told = signal.reason;
          reject(new Error('aborted'));
        });
      });
    const work = within(0, heeds, { reason });
    work.catch(() => undefined);
    await pass(1);
    await expect(work).rejects.toBe(LATE);
    expect(told).toBe(LATE);
  });

  it('is not waited for once the time is over, whatever it still comes to', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    const work = within(MS, () => promise, { reason });
    while (await isPending(work)) await pass(STEP_MS);
    expect(nowMs).toBe(MS);
    await expect(work).rejects.toBe(LATE);
    reject(new Error('nobody is there to catch it'));
    // What nobody handles is told by the next turn, and fails the run.
    await turn();
  });

  it("is not waited for once the caller's signal aborts, and not begun after that", async () => {
    const caller = new AbortController();
    const hangs = vi.fn(() => new Promise<never>(() => undefined));
    const work = within(MS, hangs, { signal: caller.signal, reason });
    caller.abort('not wanted any more');
    await expect(work).rejects.toBe('not wanted any more');
    await expect(within(MS, hangs, { signal: caller.signal })).rejects.toBe('not wanted any more');
    expect(hangs).toHaveBeenCalledOnce();
  });
});

describe('work that is under way', () => {
  it('is what it comes to, and leaves no listener', async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve('made'), signal)).toBe('made');
    await expect(untilAborted(Promise.reject(new Error('broken')), signal)).rejects.toThrow('broken');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is not waited for where the signal has aborted', async () => {
    const hangs = new Promise<never>(() => undefined);
    await expect(untilAborted(hangs, AbortSignal.abort('over'))).rejects.toBe('over');
    const fails = Promise.reject(new Error('nobody is there to catch it'));
    await expect(untilAborted(fails, AbortSignal.abort('over'))).rejects.toBe('over');
    await turn();
  });
});
