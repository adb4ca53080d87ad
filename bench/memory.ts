/**
 * What each process holds in memory, with all code that it maps: idle, and at most under load: submissions and questions for their state, a queue of jobs that
 * are encoded on all cores, and voice messages. ffmpeg's processes do not count.
 *
 *     node bench/memory.ts [--jobs 8] [--seconds 8] [--runs 5]
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { until } from 'soundpost-testing/until';
import { load } from './measuring/api.ts';
import { askedFor, printRow } from './measuring/comparison.ts';
import { inputFolder, videoOf, voiceOf } from './measuring/inputs.ts';
import { openService, residentMib, type ServiceBench } from './measuring/service.ts';
import { voiceRequests } from './measuring/voice-requests.ts';

const { jobs, seconds, runs } = askedFor({ jobs: 8, seconds: 8, runs: 5 });
const MINUTES = 2;
const video = await readFile(join(inputFolder, await videoOf(MINUTES)));
const voice = await readFile(join(inputFolder, await voiceOf(1)));
const names = ['api', 'worker', 'gateway'] as const;
const idle = names.map(() => [] as number[]);
const most = names.map(() => [] as number[]);

// What is compiled is kept for the starts that follow.
await (await openService()).close();
for (let nth = 0; nth < runs; nth += 1) {
  const service = await openService();
  // What a start needed once is given back within seconds.
  await wait(5000);
  for (const [index, name] of names.entries()) idle[index]?.push(residentMib(service.processes[name]).now);
  await underLoad(service);
  for (const [index, name] of names.entries()) most[index]?.push(residentMib(service.processes[name]).most);
  await service.close();
}

async function underLoad(service: ServiceBench): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([video]), 'talk.mp4');
  const upload = (await service.api.call('POST', '/v1/uploads', form)).body.data.file;
  const request = {
    source: { type: 'upload', file: upload },
    output: { format: 'mp3', bitrate: '192k' },
    options: { priority: 'high' },
  };
  const ids = await Promise.all(Array.from({ length: jobs }, () => service.api.submit(request)));
  const text = JSON.stringify({ ...request, options: { priority: 'low' } });
  const head = (line: string): string =>
    `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${service.key}\r\n`;
  const port = Number(new URL(service.apiUrl).port);
  const rate = { connections: 64, seconds, perSecond: 200 };
  const submitted = `${head('POST /v1/extract')}content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  await Promise.all([
    load({ ...rate, port, requests: [submitted], status: 202 }),
    load({ ...rate, port, requests: ids.map((id) => `${head(`GET /v1/status/${id}`)}\r\n`), status: 200 }),
    load({
      ...{
        port: Number(new URL(service.gatewayUrl).port),
        requests: await voiceRequests(service, voice, 1),
        status: 200,
      },
      // One connection: of several some would idle until the gateway closes them.
      ...{ connections: 1, seconds, perSecond: 10 },
    }),
  ]);
  await until(
    `${jobs} jobs are completed`,
    async () => {
      const answers = await Promise.all(ids.map((id) => service.api.call('GET', `/v1/jobs/${id}`)));
      return answers.every(({ body }) => body.data.status === 'completed') || undefined;
    },
    600_000,
  );
}

for (const [index, name] of names.entries()) {
  const title = name === 'api' ? 'API' : name;
  const load = `${jobs} jobs of ${MINUTES} min, 400 requests/s and 10 voice messages/s for ${seconds} s`;
  printRow({
    what: `memory of the ${title}, idle`,
    against: null,
    unit: 'MiB',
    ours: idle[index] ?? [],
    theirs: [],
    reach: { atMost: name === 'worker' ? 110 : 150 },
  });
  printRow({
    what: `peak memory of the ${title} under load (${load})`,
    against: null,
    unit: 'MiB',
    ours: most[index] ?? [],
    theirs: [],
    reach: { atMost: 150 },
  });
}
