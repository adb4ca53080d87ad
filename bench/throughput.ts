/**
 * A queue of jobs through all cores: API, Redis and one worker with a slot a core, from the first submission to the last completion, against
 * `xargs -P` over raw ffmpeg.
 *
 *     node bench/throughput.ts [--jobs 20] [--minutes 10] [--runs 5]
 */
import { execFile } from 'node:child_process';
import { openAsBlob } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { askedFor, inTurns, printRow, secondsOf } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { openService } from './measuring/service.ts';

const run = promisify(execFile);
const { jobs, minutes, runs } = askedFor({ jobs: 20, minutes: 10, runs: 5 });
const cores = availableParallelism();
const file = join(inputFolder, await videoOf(minutes));
const service = await openService();
const form = new FormData();
form.append('file', await openAsBlob(file), 'talk.mp4');
const upload = (await service.api.call('POST', '/v1/uploads', form)).body.data.file;
const request = { source: { type: 'upload', file: upload }, output: { format: 'mp3', bitrate: '192k' } };

const ours = async () => {
  const seconds = await secondsOf(async () => {
    const ids = await Promise.all(Array.from({ length: jobs }, () => service.api.submit(request)));
    for (let completed = new Set<string>(); !ids.every((id) => completed.has(id)); ) {
      // As a patient client does: each look takes time of a core that the jobs would miss.
      await wait(500);
      const { body } = await service.api.call('GET', '/v1/jobs?limit=100&status=completed');
      completed = new Set(body.data.jobs.map(({ jobId }: { jobId: string }) => jobId));
    }
    for (const id of ids) await service.api.call('DELETE', `/v1/jobs/${id}`);
  });
  return (jobs * 60) / seconds;
};
const theirs = async () => {
  // In a shell `$0` and `$1` are what follows the command.
  const command = 'ffmpeg -nostdin -v error -y -i "$0" -vn -c:a libmp3lame -b:a 192k "$1/raw-{}.mp3"';
  const seconds = await secondsOf(() =>
    run('sh', ['-c', `seq ${jobs} | xargs -P${cores} -I{} ${command}`, file, service.folder]),
  );
  return (jobs * 60) / seconds;
};
printRow({
  what: `${jobs} jobs of ${minutes} min → mp3 192k through ${cores} cores, first submission to last completion`,
  against: `\`xargs -P${cores}\` over raw ffmpeg`,
  unit: 'jobs/min',
  ...(await inTurns(runs, ours, theirs, { warmUp: false })),
  reach: { atLeast: 0.95 },
});
await service.close();
