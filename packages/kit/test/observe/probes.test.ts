/** How the rows of the table are asked, and what counts as a failure, on a clock of the test's own. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createLogger } from '../../src/observe/logger.ts';
import { type ProbeState, Probes, probeTable } from '../../src/observe/probes.ts';

let probes: Probes;
let changes: number;
beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  probes = new Probes(createLogger('silent'));
  changes = 0;
  probes.on('changed', () => {
    changes += 1;
  });
});

const passMs = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('a row is asked when told to, then at its interval, more often while it fails, until it is closed', async () => {
  let state: ProbeState<'storage'> = 'up';
  let asked = 0;
  const ask = () => {
    asked += 1;
    return state;
  };
  const closed = vi.fn();
  probes.add('storage', { ask, close: closed });
  const { everyMs, everyMsWhileFailing } = probeTable.storage;
  await passMs(3 * everyMs);
  expect([asked, probes.state('storage')]).toEqual([0, 'up']);
  expect(await Promise.all([probes.ask('storage'), probes.ask('storage')])).toEqual(['up', 'up']);
  expect(asked).toBe(1);
  await passMs(3 * everyMs);
  expect(asked).toBe(4);
  state = 'slow';
  await passMs(everyMs);
  expect([probes.state('storage'), probes.pauses('extract'), changes]).toEqual(['slow', false, 0]);
  state = 'down';
  await passMs(everyMs);
  expect([probes.state('storage'), probes.pauses('extract'), changes]).toEqual(['down', true, 1]);
  expect(probes.pauses('webhook')).toBe(false);
  asked = 0;
  await passMs(4 * everyMsWhileFailing);
  expect([asked, changes]).toEqual([4, 1]);
  state = 'up';
  await passMs(everyMsWhileFailing);
  expect([probes.pauses('extract'), changes]).toEqual([false, 2]);
  await probes.close('storage');
  await probes.close('storage');
  await passMs(3 * everyMs);
  expect([asked, closed.mock.calls.length]).toEqual([5, 1]);
});

test('so many failures in a row count, and one that cannot be asked begins the count anew', async () => {
  const broken = vi.fn();
  probes.on('broken', broken);
  const { everyMs, failureThreshold } = probeTable.consumer;
  let isAway = false;
  const ask = () => {
    if (isAway) throw new Error('Redis is away');
    return 'stalled' as const;
  };
  probes.add('consumer', { ask });
  await probes.ask('consumer');
  await passMs((failureThreshold - 2) * everyMs);
  isAway = true;
  await passMs(everyMs);
  isAway = false;
  await passMs((failureThreshold - 1) * everyMs);
  expect([probes.isFailing('consumer'), broken.mock.calls.length]).toEqual([false, 0]);
  await passMs(everyMs);
  expect(probes.isFailing('consumer')).toBe(true);
  await passMs(everyMs);
  expect(broken.mock.calls).toEqual([[probeTable.consumer.failed]]);
});

test('workers of every queue are paused by the clock, beside what else pauses theirs', async () => {
  let clock: ProbeState<'clock'> = 'wrong';
  probes.add('clock', { ask: () => clock });
  probes.add('disk', { ask: () => 'low', figures: () => ({ soundpost_worker_disk_low: 1 }) });
  await Promise.all([probes.ask('clock'), probes.ask('disk')]);
  expect([probes.pauses('extract'), probes.pauses('webhook')]).toEqual([true, true]);
  clock = 'right';
  await probes.ask('clock');
  expect([probes.pauses('extract'), probes.pauses('webhook')]).toEqual([true, false]);
  expect(probes.figures()).toEqual([['soundpost_worker_disk_low', 1]]);
  await probes.close('clock', 'disk');
});
