/**
 * Queues of jobs through all cores: API, Redis and one worker with a slot a core, from the first submission to the last completion, against
 * `xargs -P` over raw ffmpeg.
 *
 *     node bench/throughput.ts [--jobs 20] [--minutes 10] [--shortJobs 96] [--shortMinutes 2] [--runs 5]
 */
import { join } from 'node:path';
import { askedFor } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { measureQueue } from './measuring/queue-of-jobs.ts';
import { openService } from './measuring/service.ts';

const asked = askedFor({ jobs: 20, minutes: 10, shortJobs: 96, shortMinutes: 2, runs: 5 });
const service = await openService();
const queues = [
  { jobs: asked.jobs, minutes: asked.minutes },
  { jobs: asked.shortJobs, minutes: asked.shortMinutes },
];
for (const { jobs, minutes } of queues) {
  await measureQueue({
    service,
    file: join(inputFolder, await videoOf(minutes)),
    length: `${minutes} min`,
    jobs,
    runs: asked.runs,
    // Nothing beside a run of a minute.
    warmUp: false,
    reach: { atLeast: 0.95 },
  });
}
await service.close();
