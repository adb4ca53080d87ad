/** What script/capacity.ts computes with, out of `bench/results`. */
import { median, type Row } from '../bench/measuring/comparison.ts';
import type { Result, RowScript } from '../bench/measuring/results.ts';
import { encodingSeconds, type Measured } from './capacity.ts';

const MIB = 1024 ** 2;
const GB = 1e9;

/** What `readResults` gives. */
export type Results = readonly { readonly script: RowScript; readonly result: Result }[];

const needed = [
  'throughput',
  'short-jobs',
  'accept',
  'status',
  'transfers',
  'long-queue',
  'kept-jobs',
  'memory',
  'fetch-over-link',
  'copy',
] as const satisfies readonly RowScript[];

/** @returns undefined where all was measured, and on one machine; else what is not, as a sentence: the times of two machines make a plan for neither */
export function notOfOneMachine(results: Results): string | undefined {
  const byMachine = Map.groupBy(needed, (script) => {
    const machine = results.find((one) => one.script === script)?.result.machine;
    return machine === undefined ? 'nowhere' : JSON.stringify(machine);
  });
  if (byMachine.size === 1 && !byMachine.has('nowhere')) return undefined;
  const places = [...byMachine].map(([machine, scripts]) => `${scripts.join(', ')} ${placeOf(machine)}`);
  return `Not computed: all figures have to be of one machine, and these were measured ${places.join('; ')}. \`script/bench ${needed.join(' ')}\` measures them.`;
}

function placeOf(machine: string): string {
  return machine === 'nowhere' ? machine : `on ${JSON.parse(machine).processor}`;
}

/** @throws Error where a row was not measured */
export function measuredOf(results: Results): Measured & {
  /** Seconds of a core that copying the sound of a minute takes. */
  readonly copySecondsPerMinute: number;
} {
  const rowOf = (script: RowScript, what: RegExp): Row => {
    const rows = results.find((one) => one.script === script)?.result.rows ?? [];
    const row = rows.find((one) => what.test(one.what));
    if (row === undefined)
      throw new Error(`bench/results/${script}.json has no row like ${what}: run script/bench ${script}`);
    return row;
  };
  const figure = (script: RowScript, what: RegExp): number => median(rowOf(script, what).ours);
  const remark = (script: RowScript, what: RegExp, name: RegExp): number => {
    const found = rowOf(script, what).remarks.find((one) => name.test(one.what));
    if (found === undefined)
      throw new Error(`bench/results/${script}.json says nothing of ${name}: run script/bench ${script}`);
    return found.value;
  };
  const cores = results.find(({ script }) => script === 'throughput')?.result.machine.cores ?? Number.NaN;
  return {
    encoding: encodingSeconds(
      { minutes: 10 / 60, jobsPerCoreMinute: figure('short-jobs', /jobs of 10 s → mp3 192k/) / cores },
      { minutes: 10, jobsPerCoreMinute: figure('throughput', /10 min → mp3 192k/) / cores },
    ),
    acceptsPerSecond: figure('accept', /POST/),
    questionsPerSecond: figure('status', /GET/),
    apiSecondsPerByte: {
      uploaded: figure('transfers', /uploads/) / GB,
      downloaded: figure('transfers', /downloads/) / GB,
    },
    waitingBytes: remark('long-queue', /accepting/, /^Redis$/),
    keptBytes: figure('kept-jobs', /memory/),
    redisSecondsPerJob: figure('kept-jobs', /processor time/) / 1000,
    connections: { api: figure('kept-jobs', /one api/), worker: figure('kept-jobs', /one worker/) },
    bytesOfProcess: {
      api: figure('memory', /api, at most/) * MIB,
      worker: figure('memory', /worker, at most/) * MIB,
    },
    fetchedShare: remark('fetch-over-link', /mp3/, /bytes of the file/) / 100,
    // An hour was copied, which takes one core.
    copySecondsPerMinute: figure('copy', /AAC → m4a, 60 min/) / 60,
  };
}
