/** The capacity model: proportions, whole machines, limits. That the page and the results agree is looked at by tables.test.ts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Row } from '../../bench/measuring/comparison.ts';
import {
  type Assumed,
  encodingSeconds,
  fetchedBytes,
  limits,
  type Measured,
  type Plan,
  planFor,
  resultBytes,
} from '../../script/capacity.ts';
import type { Results } from '../../script/capacity-measured.ts';
import { capacityPage } from '../../script/capacity-page.ts';

const measured: Measured = {
  encoding: { perJob: 2, perMinute: 1 },
  acceptsPerSecond: 1000,
  questionsPerSecond: 10_000,
  apiSecondsPerByte: { uploaded: 4e-9, downloaded: 1e-9 },
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
  uploadedShare: 0.1,
  sparseShare: 0.5,
  outputs: [
    { name: 'one', share: 0.5, bitsPerSecond: 160_000 },
    { name: 'two', share: 0.5, bitsPerSecond: 320_000 },
  ],
  questionsPerJob: 10,
  uploadSeconds: 1800,
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
      // 12 s of a core each second, of which a half is to be busy.
      workerCores: 24,
      workerMachines: 6,
      workerBytes: 1e8 + 4 * 5e8,
      // Of a process each second 2 ms for requests, 120 for 30 MB of an upload, 18 for a result of 18 MB.
      apiProcesses: 1,
      redisBytes: 86_400 * 10_000 + 600 * 1000,
      redisCores: 0.01,
      redisConnections: 6 * 10 + 2,
      cells: 1,
      // 10 min of 240 kbit/s are 18 MB.
      storageBytes: 3600 * 18e6 + 1800 * 30e6,
      // A tenth of the videos, each of 300 MB.
      uploadedBitsPerSecond: 30e6 * 8,
      // Of the others: a half is fetched as a whole, of the other half a twentieth.
      fetchedBitsPerSecond: 0.9 * (150e6 + 7.5e6) * 8,
      writtenBitsPerSecond: 18e6 * 8,
    };
    expect(Object.keys(plan).toSorted()).toEqual(Object.keys(expected).toSorted());
    for (const name of Object.keys(expected) as (keyof Plan)[])
      expect(plan[name], name).toBeCloseTo(expected[name], 5);
    expect(resultBytes(assumed)).toBe(18e6);
    expect(fetchedBytes(measured, assumed)).toBeCloseTo(0.9 * 157.5e6, 3);
  });

  it('counts the bytes that pass through the APIs', () => {
    // 140 ms of a process for a job: at 600 jobs/min 1.4 processes, of which each is to be busy for a half.
    expect(planFor(600, measured, assumed).apiProcesses).toBe(3);
    const addresses = { ...assumed, uploadedShare: 0 };
    expect(planFor(600, measured, addresses).apiProcesses).toBe(1);
  });

  it('has the length of a video as a parameter: what a job takes whatever its length is little of a long one, and most of a clip', () => {
    const coresFor = (minutes: number): number => planFor(60, measured, { ...assumed, minutes }).workerCores;
    expect([0.1, 10, 60].map(coresFor)).toEqual([4.2, 24, 124]);
    const [short, long] = [0.5, 10].map((minutes) => ({ minutes, jobsPerCoreMinute: 60 / (2 + minutes) }));
    expect(short && long && encodingSeconds(short, long)).toEqual({ perJob: 2, perMinute: 1 });
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

describe('the page', () => {
  const row = (what: string, value: number, remarks: Row['remarks'] = []): Row => ({
    ...{ what, against: null, unit: 's', ours: [value], theirs: [], reach: null, remarks },
  });
  const remark = (what: string, value: number) => ({ what, value, unit: '', reach: null });
  const rows = {
    throughput: [row('20 jobs of 10 min → mp3 192k', 15)],
    'short-jobs': [row('60 jobs of 10 s → mp3 192k', 600)],
    accept: [row('`POST /v1/extract`', 2000)],
    status: [row('`GET /v1/status`', 5000)],
    transfers: [row('for a GB of uploads', 4), row('for a GB of downloads', 1)],
    'long-queue': [row('accepting', 2, [remark('Redis', 1500)])],
    'kept-jobs': [row('memory', 8000), row('processor time', 2), row('one api', 3), row('one worker', 7)],
    memory: [row('api, at most', 180), row('worker, at most', 130)],
    'fetch-over-link': [row('mp3', 60, [remark('bytes of the file', 4)])],
    copy: [row('AAC → m4a, 60 min', 2)],
  };
  const machine = { processor: 'One', cores: 2, memoryGib: 8, node: '24', ffmpeg: '5', redis: '7' };
  const results: Results = Object.entries(rows).map(([script, of]) => ({
    script: script as keyof typeof rows,
    result: { measuredOn: '2026-01-01', machine, loadBefore: 0, rows: of },
  }));
  const elsewhere = (script: string): Results =>
    results.map((one) =>
      one.script === script
        ? { ...one, result: { ...one.result, machine: { ...machine, processor: 'Other' } } }
        : one,
    );

  it('tells of 1, 100 and 10,000 jobs a minute, as measured on one machine', () => {
    const { figures, assumptions, plans, limits: ends } = capacityPage(results);
    expect(plans).toMatch(/\| 1 jobs\/min \| 100 jobs\/min \| 10,000 jobs\/min \|/);
    // A clip of 10 s takes 0.2 s of a core, a video of 10 min 8 s of one.
    expect(figures).toContain('| 68 ms, and 790 ms a minute of its video |');
    expect(assumptions).toContain('| 10 min, ');
    expect(ends).toContain('one API process');
  });

  it('tells of videos of another length when it is asked', () => {
    expect(capacityPage(results, 0.5).assumptions).toContain('| 0.5 min, ');
    expect(capacityPage(results, 0.5).plans).not.toBe(capacityPage(results).plans);
  });

  it('computes nothing of figures of two machines, and says which have to be measured', () => {
    const { figures, plans } = capacityPage(elsewhere('accept'));
    expect(figures).toMatch(
      /^Not computed: .* on One; accept on Other\. `script\/bench throughput .*` measures them\.$/,
    );
    expect(plans).toBe('–');
    expect(capacityPage(results.filter(({ script }) => script !== 'copy')).figures).toMatch(
      /; copy nowhere\./,
    );
  });

  it('says which row is missing where a script measured others', () => {
    const others = results.map((one) =>
      one.script === 'transfers' ? { ...one, result: { ...one.result, rows: rows.copy } } : one,
    );
    expect(() => capacityPage(others)).toThrow('run script/bench transfers');
  });
});
