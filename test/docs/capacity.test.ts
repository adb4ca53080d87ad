/** The capacity model: proportions, whole machines, limits. That the page and the results agree is looked at by tables.test.ts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Assumed,
  fetchedBytes,
  limits,
  type Measured,
  type Plan,
  planFor,
  resultBytes,
} from '../../script/capacity.ts';
import { capacityTable } from '../../script/capacity-page.ts';

const measured: Measured = {
  jobsPerCoreMinute: 5,
  acceptsPerSecond: 1000,
  questionsPerSecond: 10_000,
  waitingBytes: 1000,
  keptBytes: 10_000,
  redisSecondsPerJob: 0.01,
  connections: { api: 2, worker: 10 },
  bytesOfProcess: { api: 1e8, worker: 1e8 },
  fetchedShare: 0.05,
};
const assumed: Assumed = {
  minutes: 10,
  sourceBitsPerSecond: 4e6,
  sparseShare: 0.5,
  outputs: [
    { name: 'one', share: 0.5, bitsPerSecond: 160_000 },
    { name: 'two', share: 0.5, bitsPerSecond: 320_000 },
  ],
  questionsPerJob: 10,
  resultSeconds: 3600,
  recordSeconds: 86_400,
  queueMinutes: 10,
  busyShare: 0.5,
  workerCores: 4,
  encoderBytes: 5e8,
  redisBytes: 1e10,
  redisConnections: 1000,
};

describe('the capacity model', () => {
  it('is the arithmetic that it says, in its units', () => {
    // 60 jobs/min are one a second.
    const plan = planFor(60, measured, assumed);
    const expected: Plan = {
      workerCores: 24,
      workerMachines: 6,
      workerBytes: 1e8 + 4 * 5e8,
      // 2 ms of a process each second.
      apiProcesses: 1,
      redisBytes: 86_400 * 10_000 + 600 * 1000,
      redisCores: 0.01,
      redisConnections: 6 * 10 + 2,
      cells: 1,
      // 10 min of 240 kbit/s are 18 MB.
      storageBytes: 3600 * 18e6,
      // 300 MB: a half of the jobs fetches them all, the other a twentieth.
      fetchedBitsPerSecond: (150e6 + 7.5e6) * 8,
      writtenBitsPerSecond: 18e6 * 8,
    };
    expect(Object.keys(plan).toSorted()).toEqual(Object.keys(expected).toSorted());
    for (const name of Object.keys(expected) as (keyof Plan)[])
      expect(plan[name], name).toBeCloseTo(expected[name], 5);
    expect(resultBytes(assumed)).toBe(18e6);
    expect(fetchedBytes(measured, assumed)).toBeCloseTo(157.5e6, 3);
  });

  it('never takes less for more', () => {
    const load = fc.double({ min: 0.01, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(load, load, (one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)].map((jobs) =>
          planFor(jobs, measured, assumed),
        ) as [Plan, Plan];
        for (const name of Object.keys(less) as (keyof Plan)[])
          expect(more[name], name).toBeGreaterThanOrEqual(less[name]);
      }),
    );
  });

  it('has a limit where the plan needs a second one of it', () => {
    const at = (what: RegExp): number =>
      limits(measured, assumed, { submissionsPerMinuteOfKey: 60, queueLimit: 10_000 }).find((limit) =>
        what.test(limit.what),
      )?.jobsPerMinute ?? Number.NaN;
    const around = (jobs: number, of: (plan: Plan) => number): number[] =>
      [0.999, 1.001].map((part) => of(planFor(jobs * part, measured, assumed)));
    expect(around(at(/worker machine/), ({ workerMachines }) => workerMachines)).toEqual([1, 2]);
    expect(around(at(/API process/), ({ apiProcesses }) => apiProcesses)).toEqual([1, 2]);
    expect(around(at(/memory of one Redis/), ({ cells }) => cells)).toEqual([1, 2]);
    expect(around(at(/core of one Redis/), ({ redisCores }) => Math.ceil(redisCores / 0.5))).toEqual([1, 2]);
    expect(at(/QUEUE_LIMIT/)).toBe(1000);
  });

  it('has one limit for records of a day where they are kept for no longer', () => {
    const ofMemory = (recordSeconds: number): string[] =>
      limits(measured, { ...assumed, recordSeconds }, { submissionsPerMinuteOfKey: 60, queueLimit: 10_000 })
        .map(({ what }) => what)
        .filter((what) => what.startsWith('memory'));
    expect(ofMemory(86_400)).toEqual(['memory of one Redis, records kept for 1 day']);
    expect(ofMemory(7 * 86_400)).toEqual([
      'memory of one Redis, records kept for 7 days',
      'memory of one Redis, records kept for 1 day',
    ]);
  });

  it('comes in the order in which a growing load meets the limits', () => {
    const found = limits(measured, assumed, { submissionsPerMinuteOfKey: 60, queueLimit: 10_000 }).map(
      ({ jobsPerMinute }) => jobsPerMinute,
    );
    expect(found).toEqual(found.toSorted((one, other) => one - other));
  });
});

it('the page tells of 1, 100 and 10,000 jobs a minute, as measured', () => {
  expect(capacityTable()).toMatch(/\| 1 jobs\/min \| 100 jobs\/min \| 10,000 jobs\/min \|/);
});
