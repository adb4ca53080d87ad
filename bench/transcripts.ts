/**
 * Whether the audio is later by a transcript that is asked for with it: from its submission to the event that tells its end, the 95th percentile of jobs that come
 * one at a time, and of a queue of them. The transcriber is a server of this process that takes its time and hears nothing, so what is
 * measured is what the service does: one more output of the same decode, its storing, and the turns of a queue beside.
 *
 *     node bench/transcripts.ts [--minutes 10] [--jobs 20] [--runs 5]
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { askedFor, inTurns, median, printRow } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { allCompleted, removeJobs, toMp3, uploaded } from './measuring/queue-of-jobs.ts';
import { openService } from './measuring/service.ts';

const { minutes, jobs, runs } = askedFor({ minutes: 10, jobs: 20, runs: 5 });
const TRANSCRIBER_MS = 2000;

const transcriber = createServer(async (request, response) => {
  request.resume();
  await once(request, 'end');
  await wait(TRANSCRIBER_MS);
  response.setHeader('content-type', 'application/json').end('{"text":"","segments":[]}');
}).listen(0, '127.0.0.1');
await once(transcriber, 'listening');
const { port } = transcriber.address() as AddressInfo;

const service = await openService({ TRANSCRIBER_URL: `http://127.0.0.1:${port}/v1` });
const source = await uploaded(service, join(inputFolder, await videoOf(minutes)));
const audio = { name: 'audio', ...toMp3 };
const words = { name: 'words', format: 'transcript' };

/** Asked for and not waited for: the events of a job go on until its transcript has ended. */
async function completedAfter(jobId: string, begunAt: number): Promise<number> {
  const response = await fetch(`${service.apiUrl}/v1/jobs/${jobId}/events`, {
    headers: { 'x-api-key': service.key },
  });
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"status":"completed"')) return (performance.now() - begunAt) / 1000;
  }
  throw new Error(`the job did not complete: ${text}`);
}

const p95 = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.ceil(values.length * 0.95) - 1] ?? Number.NaN;

/** The next one begins after its transcript, whose turns would go on beside it. */
async function alone(outputs: readonly object[]): Promise<number> {
  const begunAt = performance.now();
  const jobId = await service.api.submit({ source, outputs });
  const took = await completedAfter(jobId, begunAt);
  await forget([jobId]);
  return took;
}

async function atOnce(outputs: readonly object[]): Promise<number> {
  const begunAt = performance.now();
  const jobIds: string[] = [];
  for (let nth = 0; nth < jobs; nth += 1) jobIds.push(await service.api.submit({ source, outputs }));
  const took = await Promise.all(jobIds.map((jobId) => completedAfter(jobId, begunAt)));
  await forget(jobIds);
  return p95(took);
}

/** Not before their transcripts have ended as well, whose turns would go on beside what is measured next. */
async function forget(jobIds: readonly string[]): Promise<void> {
  await allCompleted(service, jobIds);
  await removeJobs(service, jobIds);
}

const row = { against: 'without the transcript', unit: 's', reach: { atMost: 1.05 } };
const kinds = [[audio, words], [audio]] as const;

// In turns job by job: the machine changes more within a run of them than a transcript would.
const { ours, theirs } = await inTurns(jobs, ...pairOf(alone));
printRow({
  what: `mp3 192k with a transcript, ${jobs} jobs of ${minutes} min one at a time, completed: p95`,
  ...{ ...row, ours: [p95(ours)], theirs: [p95(theirs)] },
  remarks: [{ what: 'ratio of the medians', value: median(ours) / median(theirs), unit: '' }],
});
printRow({
  what: `mp3 192k with a transcript, ${jobs} jobs of ${minutes} min all at once, completed: p95`,
  ...{ ...row, ...(await inTurns(runs, ...pairOf(atOnce))) },
});

function pairOf(measure: (outputs: readonly object[]) => Promise<number>) {
  return [() => measure(kinds[0]), () => measure(kinds[1])] as const;
}

await service.close();
transcriber.close();
