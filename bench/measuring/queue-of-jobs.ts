/** A queue of equal jobs through the service, and `xargs -P` over raw ffmpeg beside it. */
import { execFile } from 'node:child_process';
import { openAsBlob } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { descendants } from 'soundpost-testing/processes';
import { usedSeconds } from './api.ts';
import { inTurns, median, printRow, type Reach, secondsOf } from './comparison.ts';
import type { ServiceBench } from './service.ts';

/** All that is needed to have jobs done. */
type Reached = Pick<ServiceBench, 'api' | 'apiUrl' | 'key'>;

const run = promisify(execFile);
export const cores = availableParallelism();
export const toMp3 = { format: 'mp3', bitrate: '192k' } as const;

/** A file of this machine, sent once. @returns what a request names it by */
export async function uploaded(service: Reached, file: string): Promise<{ type: 'upload'; file: string }> {
  const form = new FormData();
  form.append('file', await openAsBlob(file), basename(file));
  const { body } = await service.api.call('POST', '/v1/uploads', form);
  return { type: 'upload', file: body.data.file };
}

/** So many submissions are under way: of hundreds some would meet the API's deadline where the jobs before have all cores. */
const SUBMITTED_AT_A_TIME = 8;

/** Does so many, each as soon as one of those before has ended. @param atATime clients, of which each waits for its answer */
export async function inClients(atATime: number, count: number, send: () => Promise<void>): Promise<void> {
  let left = count;
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await send();
    }
  };
  await Promise.all(Array.from({ length: atATime }, client));
}

/** @returns their ids, in the order in which they were taken */
export async function submitted({ api }: Reached, request: object, jobs: number): Promise<string[]> {
  const jobIds: string[] = [];
  await inClients(SUBMITTED_AT_A_TIME, jobs, async () => {
    jobIds.push(await api.submit(request));
  });
  return jobIds;
}

/** Resolves when the job is completed, told by its events: nobody asks in vain, and nobody learns of it late. Throws when it failed. */
export async function completed({ apiUrl, key }: Reached, jobId: string): Promise<void> {
  const response = await fetch(`${apiUrl}/v1/jobs/${jobId}/events`, { headers: { 'x-api-key': key } });
  // The stream ends with the job.
  const events = await response.text();
  if (!events.includes('"status":"completed"')) throw new Error(`the job failed: ${events}`);
}

/** Resolves when all are; they end about in the order in which they came. */
export async function allCompleted(service: Reached, jobIds: readonly string[]): Promise<void> {
  for (const jobId of jobIds) await completed(service, jobId);
}

/** Results take room. */
export async function removeJobs({ api }: Reached, jobIds: readonly string[]): Promise<void> {
  for (const jobId of jobIds) await api.call('DELETE', `/v1/jobs/${jobId}`);
}

interface QueueOfJobs {
  readonly service: ServiceBench;
  readonly file: string;
  /** Of the file, for the reader: `10 min`. */
  readonly length: string;
  readonly jobs: number;
  readonly runs: number;
  readonly warmUp: boolean;
  readonly reach: Reach;
  /** Default: to MP3. */
  readonly way?: Way;
  /** What theirs runs; default: the one of the PATH. */
  readonly ffmpeg?: string;
  /** For the reader; default: `raw ffmpeg`. */
  readonly ffmpegName?: string;
}

/** A request, and what does the same by hand. */
export interface Way {
  readonly name: string;
  readonly extension: string;
  readonly output: object;
  readonly raw: readonly string[];
}

export const encoding: Way = {
  name: 'mp3 192k',
  extension: 'mp3',
  output: toMp3,
  raw: ['-c:a', 'libmp3lame', '-b:a', '192k'],
};

export const copying: Way = {
  name: 'm4a (copied)',
  extension: 'm4a',
  output: { format: 'm4a', copy: 'auto' },
  raw: ['-c:a', 'copy'],
};

export const voicing: Way = {
  name: 'voice 16k',
  extension: 'ogg',
  output: { format: 'voice', bitrate: '16k' },
  raw: ['-ac', '1', '-c:a', 'libopus', '-b:a', '16k', '-application', 'voip'],
};

/** Prints the row: of a file that was uploaded before, from the first submission to the last completion. */
export async function measureQueue(queue: QueueOfJobs): Promise<void> {
  const { service, file, length, jobs, runs, warmUp, reach } = queue;
  const { way = encoding, ffmpeg = 'ffmpeg', ffmpegName = 'raw ffmpeg' } = queue;
  const request = { source: await uploaded(service, file), output: way.output };
  const nodeMs: number[] = [];
  const ours = async () => {
    let jobIds: string[] = [];
    const before = nodeSeconds(service);
    const seconds = await secondsOf(async () => {
      jobIds = await submitted(service, request, jobs);
      await allCompleted(service, jobIds);
    });
    nodeMs.push(((nodeSeconds(service) - before) * 1000) / jobs);
    await removeJobs(service, jobIds);
    return (jobs * 60) / seconds;
  };
  const theirs = async () => {
    // In a shell `$0` and `$1` are what follows the command.
    const command = `${ffmpeg} -nostdin -v error -y -i "$0" -vn ${way.raw.join(' ')} "$1/raw-{}.${way.extension}"`;
    const seconds = await secondsOf(() =>
      run('sh', ['-c', `seq ${jobs} | xargs -P${cores} -I{} ${command}`, file, service.folder]),
    );
    return (jobs * 60) / seconds;
  };
  printRow({
    what: `${jobs} jobs of ${length} of audio → ${way.name} on ${cores} cores, first submission to last completion`,
    against: `\`xargs -P${cores}\` over ${ffmpegName}`,
    unit: 'jobs/min',
    ...(await inTurns(runs, ours, theirs, { warmUp })),
    reach,
    remarks: [
      {
        what: 'processor time of API and worker per job, without ffmpeg',
        value: median(nodeMs),
        unit: 'ms',
      },
    ],
  });
}

/** Tools that have ended are not counted, and between two queues none runs. */
function nodeSeconds({ processes: { api, worker } }: ServiceBench): number {
  const pids = [api, worker].flatMap(({ pid }) => [pid, ...descendants(pid)]);
  return pids.reduce((sum, pid) => sum + usedSeconds(pid), 0);
}
