/**
 * Clips of seconds, as chats are full of: there a start of ffmpeg, a process or a question to Redis counts as much as the encoding. Everything with the service as in
 * production (API, Redis, one worker with a slot a core) and beside it the ffmpeg of the PATH, which has to be Debian's own. Four rows:
 *
 * - A queue of clips that were uploaded before, from the first submission to the last completion, against `xargs -P`, which starts with the files at hand.
 * - The same with the whole way of a client, who has the clip and wants the MP3: each job comes with its clip in a multipart form, and ends when its result has been
 *   downloaded, against a server of Express and fluent-ffmpeg that takes the same form and answers with the MP3 (bench/measuring/bare-extract.ts). A client a core
 *   sends to either; ours is told at once and goes on sending, then waits and downloads.
 * - One clip that was uploaded before, from its submission to the event that tells its end, against one ffmpeg; to MP3 and to a voice note. A figure is the mean of `--single` clips,
 *   one after the other.
 *
 *     node bench/short-jobs.ts [--jobs 60] [--seconds 10] [--single 20] [--runs 5]
 */
import { openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { clipOf, inputFolder } from './measuring/inputs.ts';
import { rawFfmpeg } from './measuring/jobs.ts';
import {
  completed,
  cores,
  inClients,
  measureQueue,
  removeJobs,
  toMp3,
  uploaded,
} from './measuring/queue-of-jobs.ts';
import { openService } from './measuring/service.ts';

const { jobs, seconds, single, runs } = askedFor({ jobs: 60, seconds: 10, single: 20, runs: 5 });
const file = join(inputFolder, await clipOf(seconds));
const service = await openService();
const length = `${seconds} s`;

await measureQueue({ service, file, length, jobs, runs, warmUp: true, reach: { atLeast: 1.2 } });
await measureClients();
await measureOne('mp3 192k', toMp3, ['-c:a', 'libmp3lame', '-b:a', '192k', join(service.folder, 'one.mp3')]);
await measureOne('voice 16k', { format: 'voice', bitrate: '16k' }, [
  ...['-ac', '1', '-c:a', 'libopus', '-b:a', '16k', '-application', 'voip'],
  join(service.folder, 'one.ogg'),
]);
await service.close();

async function measureClients(): Promise<void> {
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
    what: `${jobs} clips of ${length} sent along with their jobs → mp3 192k downloaded, ${cores} clients`,
    against: 'Express and fluent-ffmpeg, the MP3 in the answer',
    unit: 'jobs/min',
    ...(await inTurns(runs, ours, theirs)),
    reach: { atLeast: 1 },
  });
  bare.signal('SIGTERM');
  await bare.exited;
}

/** @throws Error when the bytes are fewer than half of what the bitrate says */
function checkMp3(bytes: Buffer): void {
  if (bytes.length < (seconds * 192_000) / 8 / 2) throw new Error(`an MP3 of ${bytes.length} bytes`);
}

/** @param raw what ffmpeg makes of the same file */
async function measureOne(name: string, output: object, raw: readonly string[]): Promise<void> {
  const request = { source: await uploaded(service, file), output };
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
      for (let nth = 0; nth < single; nth += 1) await rawFfmpeg(file, ...raw);
    });
    return took / single;
  };
  printRow({
    what: `one clip of ${length} → ${name}, submitted to completed`,
    against: 'raw ffmpeg on the local file',
    unit: 's',
    ...(await inTurns(runs, ours, theirs)),
    reach: { atMost: 1.1 },
  });
}
