/** The tables of docs/operations.md "Capacity", made of what was measured. */
import type { RowScript } from '../bench/measuring/results.ts';
import { loadConfig } from '../src/config.ts';
import { MEMORY_BYTES } from '../src/media/sandbox.ts';
import {
  type Assumed,
  DAY,
  days,
  fetchedBytes,
  jobSeconds,
  limits,
  type Plan,
  planFor,
  resultBytes,
} from './capacity.ts';
import { measuredOf, notOfOneMachine, type Results } from './capacity-measured.ts';
import { code, markdownTable } from './markdown-table.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const GB = 1e9;
const LOADS = [1, 100, 10_000];
/** Code of shared libraries, beside what is limited. */
const LIBRARY_BYTES = 64 * MIB;

const config = loadConfig({});
const settings = { submissionsPerMinuteOfKey: config.RATE_SUBMIT_PER_MINUTE, queueLimit: config.QUEUE_LIMIT };
const usual: Assumed = {
  minutes: 10,
  // Of the video that was measured with.
  sourceBitsPerSecond: 4.35e6,
  uploadedShare: 0.2,
  sparseShare: 0.8,
  outputs: [
    { name: 'mp3 192k', share: 0.6, bitsPerSecond: 192_000 },
    { name: 'm4a 128k, copied', share: 0.2, bitsPerSecond: 128_000 },
    { name: 'opus 96k', share: 0.1, bitsPerSecond: 96_000 },
    { name: 'flac', share: 0.1, bitsPerSecond: 700_000 },
  ],
  questionsPerJob: 10,
  uploadSeconds: config.UPLOAD_TTL_SECONDS,
  resultSeconds: config.OUTPUT_TTL_SECONDS,
  recordSeconds: config.JOB_TTL_SECONDS,
  queueMinutes: 10,
  busyShare: 0.7,
  workerCores: 8,
  encoderBytes: MEMORY_BYTES + LIBRARY_BYTES,
  redisBytes: 20 * GIB,
  redisConnections: 10_000,
};

/** Markdown, each a table. */
interface CapacityPage {
  readonly figures: string;
  readonly assumptions: string;
  readonly plans: string;
  readonly limits: string;
}

/**
 * @param results of one machine; of several nothing is computed, and the page says what has to be measured
 * @param minutes length of a video; default 10
 */
export function capacityPage(results: Results, minutes = usual.minutes): CapacityPage {
  const lacking = notOfOneMachine(results);
  if (lacking !== undefined) {
    return { figures: lacking, assumptions: '–', plans: '–', limits: '–' };
  }
  const measured = measuredOf(results);
  const assumed = { ...usual, minutes };
  return {
    figures: figureTable(measured),
    assumptions: assumptionTable(measured, assumed),
    plans: planTable(measured, assumed),
    limits: limitTable(measured, assumed),
  };
}

type Measured = ReturnType<typeof measuredOf>;

function figureTable(measured: Measured): string {
  const { encoding, apiSecondsPerByte } = measured;
  const rows: [string, string, ...RowScript[]][] = [
    [
      'a core, for a job to mp3 192k',
      `${digits(encoding.perJob * 1000)} ms, and ${digits(encoding.perMinute * 1000)} ms a minute of its video`,
      'short-jobs',
      'throughput',
    ],
    ['submissions, a second and API process', digits(measured.acceptsPerSecond), 'accept'],
    ['questions for a state, a second and API process', digits(measured.questionsPerSecond), 'status'],
    [
      'an API process, for a GB of uploads, of downloads',
      `${digits(apiSecondsPerByte.uploaded * GB)} s, ${digits(apiSecondsPerByte.downloaded * GB)} s`,
      'transfers',
    ],
    ['Redis: bytes of a job that waits', digits(measured.waitingBytes), 'long-queue'],
    ['Redis: bytes of a job that is kept, with its webhook', digits(measured.keptBytes), 'kept-jobs'],
    ['Redis: processor time of a job', `${digits(measured.redisSecondsPerJob * 1000)} ms`, 'kept-jobs'],
    [
      'Redis: connections of a worker, of an API',
      `${measured.connections.worker}, ${measured.connections.api}`,
      'kept-jobs',
    ],
    [
      'memory of an API, of a worker without its ffmpeg',
      `${size(measured.bytesOfProcess.api)}, ${size(measured.bytesOfProcess.worker)}`,
      'memory',
    ],
    [
      'of a video at an address that is fetched',
      `${digits(measured.fetchedShare * 100)} %`,
      'fetch-over-link',
    ],
  ];
  return markdownTable(
    ['Figure', 'Measured', 'By'],
    rows.map(([what, value, ...scripts]) => [
      what,
      value,
      scripts.map((script) => code(`bench/${script}.ts`)).join(', '),
    ]),
  );
}

function assumptionTable(measured: Measured, assumed: Assumed): string {
  const mix = assumed.outputs.map(({ name, share }) => `${share * 100} % ${name}`).join(', ');
  const { encoding, copySecondsPerMinute } = measured;
  const copySeconds = encoding.perJob + copySecondsPerMinute * assumed.minutes;
  const copyShare = copySeconds / jobSeconds(measured, assumed);
  return markdownTable(
    ['Assumed', 'Value'],
    [
      [
        'a video',
        `${digits(assumed.minutes)} min, ${digits(assumed.sourceBitsPerSecond / 1e6)} Mbit/s; ${assumed.uploadedShare * 100} % are uploaded and kept for ${days(assumed.uploadSeconds)}; of ${assumed.sparseShare * 100} % of the others only the sound is fetched, of the rest everything: ${size(fetchedBytes(measured, assumed))} a job`,
      ],
      [
        'a result',
        `${mix}: ${size(resultBytes(assumed))} a job, kept for ${days(assumed.resultSeconds)}, downloaded once through an API`,
      ],
      [
        'processor',
        `every job as if it were to mp3 192k; a copy takes ${digits(copyShare * 100)} % of that (${code('bench/copy.ts')})`,
      ],
      ['a client', `asks ${assumed.questionsPerJob} times for the state, and is told by webhook`],
      ['a record', `kept for ${days(assumed.recordSeconds)} (\`JOB_TTL_SECONDS\`)`],
      [
        'the load',
        `steady; a queue of ${assumed.queueMinutes} min at the worst; cores are busy for ${assumed.busyShare * 100} % at most`,
      ],
      [
        'a worker machine',
        `${assumed.workerCores} cores, one worker; ${size(planFor(1, measured, assumed).workerBytes)} of memory where every core has an ffmpeg at its limit`,
      ],
      [
        'one Redis',
        `${size(assumed.redisBytes)} of data on a machine of 32 GiB: rewriting its file may copy what changes meanwhile`,
      ],
    ],
  );
}

function planTable(measured: Measured, assumed: Assumed): string {
  const plans = LOADS.map((load) => planFor(load, measured, assumed));
  const withDay = LOADS.map((load) => planFor(load, measured, { ...assumed, recordSeconds: DAY }));
  const row = (what: string, cell: (plan: Plan) => string, of = plans): string[] => [what, ...of.map(cell)];
  const forADay = (what: string, cell: (plan: Plan) => string): string[][] =>
    assumed.recordSeconds > DAY ? [row(`${what}, records of ${days(DAY)}`, cell, withDay)] : [];
  return markdownTable(
    ['For', ...LOADS.map((load) => `${load.toLocaleString('en')} jobs/min`)],
    [
      row('cores that encode', ({ workerCores }) => digits(workerCores)),
      row(`worker machines of ${assumed.workerCores} cores`, ({ workerMachines }) => digits(workerMachines)),
      row('API processes (2 for a failover)', ({ apiProcesses }) => digits(apiProcesses)),
      row(`Redis: memory, records of ${days(assumed.recordSeconds)}`, ({ redisBytes }) => size(redisBytes)),
      ...forADay('Redis: memory', ({ redisBytes }) => size(redisBytes)),
      row('Redis: of its core', ({ redisCores }) => `${digits(redisCores * 100)} %`),
      row('Redis: connections of workers and APIs', ({ redisConnections }) => digits(redisConnections)),
      row(`cells, records of ${days(assumed.recordSeconds)}`, ({ cells }) => digits(cells)),
      ...forADay('cells', ({ cells }) => digits(cells)),
      row('storage', ({ storageBytes }) => size(storageBytes)),
      row('uploaded', ({ uploadedBitsPerSecond }) => rate(uploadedBitsPerSecond)),
      row('fetched from sources', ({ fetchedBitsPerSecond }) => rate(fetchedBitsPerSecond)),
      row('the same for each worker machine', ({ fetchedBitsPerSecond, workerMachines }) =>
        rate(fetchedBitsPerSecond / workerMachines),
      ),
      row('results written to the storage, and downloaded once more', ({ writtenBitsPerSecond }) =>
        rate(writtenBitsPerSecond),
      ),
    ],
  );
}

function limitTable(measured: Measured, assumed: Assumed): string {
  return markdownTable(
    ['What ends', 'At jobs/min', 'What to do'],
    limits(measured, assumed, settings).map(({ what, jobsPerMinute, remedy }) => [
      what,
      digits(jobsPerMinute),
      remedy,
    ]),
  );
}

/** Two digits that count; the rest would be invented. */
function digits(value: number): string {
  return value >= 1000
    ? Number(value.toPrecision(2)).toLocaleString('en')
    : String(Number(value.toPrecision(2)));
}

function size(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB', 'PB'];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${digits(bytes / 1000 ** step)} ${units[step]}`;
}

function rate(bitsPerSecond: number): string {
  return bitsPerSecond >= 0.95e9
    ? `${digits(bitsPerSecond / 1e9)} Gbit/s`
    : `${digits(bitsPerSecond / 1e6)} Mbit/s`;
}
