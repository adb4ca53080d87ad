/**
 * What bytes cost an API, which takes videos and hands out results: its processor time for a GB. One client, one transfer after the other, files on the disk.
 *
 *     node bench/transfers.ts [--minutes 10] [--transfers 4] [--runs 5]
 */
import { openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { usedSeconds } from './measuring/api.ts';
import { askedFor, printRow } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { completed, removeJobs, uploaded } from './measuring/queue-of-jobs.ts';
import { openService } from './measuring/service.ts';

const GB = 1e9;

const { minutes, transfers, runs } = askedFor({ minutes: 10, transfers: 4, runs: 5 });
const file = join(inputFolder, await videoOf(minutes));
const service = await openService();
const video = await openAsBlob(file);

/** @param transfer one of it. @returns bytes */
async function measure(what: string, transfer: () => Promise<number>): Promise<void> {
  const ours: number[] = [];
  // What is compiled on the way.
  await transfer();
  for (let run = 0; run < runs; run += 1) {
    const before = usedSeconds(service.processes.api.pid);
    let bytes = 0;
    for (let nth = 0; nth < transfers; nth += 1) bytes += await transfer();
    ours.push(((usedSeconds(service.processes.api.pid) - before) * GB) / bytes);
  }
  printRow({ what, against: null, unit: 's', ours, theirs: [], reach: null });
}

await measure('processor time of the API per GB uploaded', async () => {
  const form = new FormData();
  form.append('file', video, 'talk.mp4');
  const { body } = await service.api.call('POST', '/v1/uploads', form);
  await service.api.call('DELETE', `/v1/uploads/${body.data.file}`);
  return (await stat(file)).size;
});

// The largest of a result for its length.
const request = { source: await uploaded(service, file), output: { format: 'wav' } };
const jobId = await service.api.submit(request);
await completed(service, jobId);
await measure('processor time of the API per GB downloaded', async () => {
  const response = await fetch(`${service.apiUrl}/v1/download/${jobId}`, {
    headers: { 'x-api-key': service.key },
  });
  let bytes = 0;
  for await (const chunk of response.body ?? []) bytes += chunk.length;
  return bytes;
});
await removeJobs(service, [jobId]);
await service.close();
