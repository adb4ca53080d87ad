/**
 * Clips of seconds, as chats are full of: there a start of ffmpeg, a process or a question to Redis counts as much as the encoding. Everything with the service as in
 * production (API, Redis, one worker with a slot a core), twice: as cloned, with nothing compiled and the ffmpeg of the PATH, which has to be Debian's own; and with the lean
 * ffmpeg and the starter, after `script/ffmpeg`. Beside it the ffmpeg that the service uses. Rows of each:
 *
 * - A queue of clips that were uploaded before, from the first submission to the last completion, against `xargs -P`, which starts with the files at hand; encoded and copied.
 * - The same with the whole way of a client, who has the clip and wants the MP3: each job comes with its clip in a multipart form, and ends when its result has been
 *   downloaded, against a server of Express and fluent-ffmpeg that takes the same form and answers with the MP3 (bench/measuring/bare-extract.ts). A client a core
 *   sends to either; ours is told at once and goes on sending, then waits and downloads.
 * - One clip that was uploaded before, from its submission to the event that tells its end, against one ffmpeg; to MP3, to a voice note, and copied. A figure is the mean of `--single` clips,
 *   one after the other.
 * - The queue with a webhook for each job, and with requests that wait for their result.
 *
 *     node bench/short-jobs.ts [--jobs 60] [--seconds 10] [--single 20] [--runs 5]
 */
import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { BUILT_FOLDER } from 'soundpost-testing/needs';
import { asCloned } from './measuring/as-cloned.ts';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { clipOf, inputFolder } from './measuring/inputs.ts';
import { ffmpegBy } from './measuring/jobs.ts';
import {
  allCompleted,
  completed,
  copying,
  cores,
  encoding,
  inClients,
  measureQueue,
  removeJobs,
  submitted,
  toMp3,
  uploaded,
  voicing,
  type Way,
} from './measuring/queue-of-jobs.ts';
import { openService, type ServiceBench } from './measuring/service.ts';

const { jobs, seconds, single, runs } = askedFor({ jobs: 60, seconds: 10, single: 20, runs: 5 });
const file = join(inputFolder, await clipOf(seconds));
const length = `${seconds} s`;

interface Kind {
  readonly name: string;
  readonly program: string;
  readonly ffmpeg: string;
  /** Of `xargs`, encoded. */
  readonly atLeast: number;
}

const kinds: readonly Kind[] = [
  { name: 'as cloned', program: await asCloned(), ffmpeg: 'ffmpeg', atLeast: 0.85 },
  { name: 'lean', program: 'src/main.ts', ffmpeg: join(BUILT_FOLDER, 'ffmpeg'), atLeast: 0.75 },
];

/** Webhooks that came. */
let received = 0;
const receiver = createServer((request, response) => {
  received += 1;
  request.resume();
  response.writeHead(204).end();
});
await once(receiver.listen(0, '127.0.0.1'), 'listening');
const receiverHost = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;

for (const kind of kinds) {
  const service = await openService({ OUTBOUND_ALLOW: receiverHost }, kind.program);
  const queue = { service, file, length, jobs, runs, warmUp: true, ffmpeg: kind.ffmpeg };
  const ffmpegName = `the same ffmpeg (${kind.name})`;
  await measureQueue({ ...queue, ffmpegName, way: encoding, reach: { atLeast: kind.atLeast } });
  await measureQueue({ ...queue, ffmpegName, way: copying, reach: { atLeast: 0.5 } });
  await measureClients(service, kind);
  await measureWays(service, kind);
  await measureOne(service, kind, encoding, 1.5);
  await measureOne(service, kind, voicing, 1.5);
  await measureOne(service, kind, copying, 2);
  await service.close();
}
receiver.close();

/** The queue of {@link encoding} with a webhook each, and by `Prefer: wait`, against the plain one. */
async function measureWays(service: ServiceBench, { name }: Kind): Promise<void> {
  const request = { source: await uploaded(service, file), output: toMp3 };
  const rateOf = async (work: () => Promise<string[]>): Promise<number> => {
    let jobIds: string[] = [];
    const took = await secondsOf(async () => {
      jobIds = await work();
    });
    await removeJobs(service, jobIds);
    return (jobs * 60) / took;
  };
  const queued = async (more = {}): Promise<string[]> => {
    const jobIds = await submitted(service, { ...request, ...more }, jobs);
    await allCompleted(service, jobIds);
    return jobIds;
  };
  const withWebhooks = async (): Promise<string[]> => {
    const before = received;
    const jobIds = await queued({ options: { webhook: `http://${receiverHost}/` } });
    while (received - before < jobs) await once(receiver, 'request');
    return jobIds;
  };
  const waitedFor = async (): Promise<string[]> => {
    const jobIds: string[] = [];
    // The most that may wait for one key.
    await inClients(50, jobs, async () => {
      const response = await fetch(`${service.apiUrl}/v1/extract`, {
        method: 'POST',
        headers: { 'x-api-key': service.key, 'content-type': 'application/json', prefer: 'wait=60' },
        body: JSON.stringify(request),
      });
      const { data } = (await response.json()) as { data: { jobId: string; status: string } };
      if (data.status !== 'completed') throw new Error(`the job is ${data.status}`);
      jobIds.push(data.jobId);
    });
    return jobIds;
  };
  const plain = () => rateOf(queued);
  for (const [how, work] of [
    ['with a webhook each', withWebhooks],
    ['by `Prefer: wait`', waitedFor],
  ] as const) {
    printRow({
      what: `${jobs} jobs of ${length} of audio → mp3 192k ${how}, ${name}`,
      against: 'the same jobs without that',
      unit: 'jobs/min',
      ...(await inTurns(runs, () => rateOf(work), plain)),
      reach: { atLeast: 0.9 },
    });
  }
}

async function measureClients(service: ServiceBench, { name }: Kind): Promise<void> {
  const bare = service.script('bare-extract.ts', service.folder);
  const bareUrl = `http://127.0.0.1:${await bare.says(/^port (\d+)/m)}`;
  const clip = await openAsBlob(file);
  const post = async (url: string): Promise<Response> => {
    const form = new FormData();
    form.append('request', JSON.stringify({ output: toMp3 }));
    form.append('file', clip, 'clip.mp4');
    const response = await fetch(url, { method: 'POST', headers: { 'x-api-key': service.key }, body: form });
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    return response;
  };
  const ours = async () => {
    const jobIds: string[] = [];
    const took = await secondsOf(async () => {
      await inClients(cores, jobs, async () => {
        const { data } = (await (await post(`${service.apiUrl}/v1/extract`)).json()) as {
          data: { jobId: string };
        };
        jobIds.push(data.jobId);
      });
      for (const jobId of jobIds) {
        await completed(service, jobId);
        checkMp3((await service.api.bytes(`/v1/download/${jobId}`)).bytes);
      }
    });
    await removeJobs(service, jobIds);
    return (jobs * 60) / took;
  };
  const theirs = async () => {
    const took = await secondsOf(() =>
      inClients(cores, jobs, async () =>
        checkMp3(Buffer.from(await (await post(`${bareUrl}/extract`)).arrayBuffer())),
      ),
    );
    return (jobs * 60) / took;
  };
  printRow({
    what: `${jobs} clips of ${length} uploaded with the request → mp3 192k, downloaded, ${cores} clients, ${name}`,
    against: 'Express and fluent-ffmpeg with Debian’s ffmpeg, which returns the MP3',
    unit: 'jobs/min',
    ...(await inTurns(runs, ours, theirs)),
    reach: { atLeast: 1.1 },
  });
  bare.signal('SIGTERM');
  await bare.exited;
}

/** @throws Error when the bytes are fewer than half of what the bitrate says */
function checkMp3(bytes: Buffer): void {
  if (bytes.length < (seconds * 192_000) / 8 / 2) throw new Error(`an MP3 of ${bytes.length} bytes`);
}

async function measureOne(service: ServiceBench, kind: Kind, way: Way, atMost: number): Promise<void> {
  const request = { source: await uploaded(service, file), output: way.output };
  const result = join(service.folder, `one.${way.extension}`);
  const ours = async () => {
    const jobIds: string[] = [];
    const took = await secondsOf(async () => {
      for (let nth = 0; nth < single; nth += 1) {
        const jobId = await service.api.submit(request);
        await completed(service, jobId);
        jobIds.push(jobId);
      }
    });
    await removeJobs(service, jobIds);
    return took / single;
  };
  const theirs = async () => {
    const took = await secondsOf(async () => {
      for (let nth = 0; nth < single; nth += 1) await ffmpegBy(kind.ffmpeg, file, ...way.raw, result);
    });
    return took / single;
  };
  printRow({
    what: `one clip of ${length} → ${way.name}, submitted to completed`,
    against: `the same ffmpeg (${kind.name}) on the local file`,
    unit: 's',
    ...(await inTurns(runs, ours, theirs)),
    reach: { atMost },
  });
}
