/**
 * One request for a clip of seconds and its MP3: with `Prefer: wait` and `Accept: audio/*` the answer is the file. Beside it the same job as a client gets it that submits,
 * asks for the job each 200 ms (ten times as often as the API recommends) and downloads. Two rows: one clip after the other, and 50 requests at once, the most that may wait
 * for one key.
 *
 *     node bench/one-request.ts [--seconds 10] [--single 20] [--together 50] [--runs 5]
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { clipOf, inputFolder } from './measuring/inputs.ts';
import { inClients, removeJobs, toMp3, uploaded } from './measuring/queue-of-jobs.ts';
import { openService } from './measuring/service.ts';

const POLL_MS = 200;

const { seconds, single, together, runs } = askedFor({ seconds: 10, single: 20, together: 50, runs: 5 });
const service = await openService();
const source = await uploaded(service, join(inputFolder, await clipOf(seconds)));
const request = { source, output: toMp3 };

/** @returns the job's id, once its file is here */
async function inOneRequest(): Promise<string> {
  const response = await fetch(`${service.apiUrl}/v1/extract`, {
    method: 'POST',
    headers: {
      ...{ 'x-api-key': service.key, 'content-type': 'application/json' },
      ...{ prefer: 'wait=60', accept: 'audio/*' },
    },
    body: JSON.stringify(request),
  });
  const jobId = response.headers.get('soundpost-job');
  const { byteLength } = await response.arrayBuffer();
  if (jobId === null || byteLength === 0) throw new Error(`no file came: ${response.status}`);
  return jobId;
}

async function byPolling(): Promise<string> {
  const jobId = await service.api.submit(request);
  for (;;) {
    const { status } = (await service.api.call('GET', `/v1/jobs/${jobId}`)).body.data;
    if (status === 'completed') break;
    if (status === 'failed') throw new Error(`${jobId} failed`);
    await delay(POLL_MS);
  }
  await service.api.bytes(`/v1/download/${jobId}`);
  return jobId;
}

/** Seconds until each of so many clips is here, by so many clients. */
async function measured(clients: number, count: number, send: () => Promise<string>): Promise<number> {
  const jobIds: string[] = [];
  const took = await secondsOf(() =>
    inClients(clients, count, async () => {
      jobIds.push(await send());
    }),
  );
  await removeJobs(service, jobIds);
  return took;
}

const against = `the same by polling each ${POLL_MS} ms`;
const clip = `${seconds} s → mp3 192k`;
printRow({
  what: `one clip of ${clip} in one request, sent to file received`,
  against,
  unit: 's',
  ...(await inTurns(
    runs,
    async () => (await measured(1, single, inOneRequest)) / single,
    async () => (await measured(1, single, byPolling)) / single,
  )),
  reach: { atMost: 1 },
});
printRow({
  what: `${together} waiting requests at once, each a clip of ${clip}`,
  against,
  unit: 's',
  ...(await inTurns(
    runs,
    () => measured(together, together, inOneRequest),
    () => measured(together, together, byPolling),
  )),
  reach: { atMost: 1.05 },
});
await service.close();
