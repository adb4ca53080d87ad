/** Three workers in containers, one of which is killed in the middle of a job: another does it, and everybody hears of it once. */
import { createHash } from 'node:crypto';
import type { Client, Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import type { StartedTestContainer } from 'testcontainers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useVideos } from '../end-to-end/videos.ts';
import { docker, inspect, isEncoding, LONG_WORK } from './engine.ts';
import { ServiceContainers } from './service.ts';

/** Prints each webhook as a line. */
const RECEIVER = `
import { createServer } from 'node:http';
createServer(async (request, response) => {
  console.log(Buffer.concat(await request.toArray()).toString());
  response.writeHead(204).end();
}).listen(9000, () => console.log('listens'));`;

const videos = useVideos({ long: true });
let service: ServiceContainers;
let client: Client;
let hooks: StartedTestContainer;
let hookUrl = '';
let workers: StartedTestContainer[];

beforeAll(async () => {
  service = await ServiceContainers.make();
  hooks = await service.program('hooks', RECEIVER, /listens/);
  hookUrl = `http://${service.hostOf('hooks')}:9000/`;
  const environment = { OUTBOUND_ALLOW: `${service.hostOf('hooks')}:9000`, WORKER_CONCURRENCY: '1' };
  client = await service.api(environment);
  workers = await Promise.all(
    [1, 2, 3].map((number) => service.run('worker', { name: `worker-${number}`, environment })),
  );
});
afterAll(() => service.remove());

async function webhooksOf(jobId: string): Promise<Json[]> {
  const lines = (await docker('logs', hooks.getId())).split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line)).filter((event) => event.jobId === jobId);
}

it('the job of a killed worker is done by another one, once', async () => {
  const request = { output: LONG_WORK, options: { webhook: hookUrl } };
  const { body } = await client.upload(videos.long, request);
  const jobId: string = body.data.jobId;
  const victim = await until('one of them encodes it', async () => {
    for (const worker of workers) if (await isEncoding(worker.getId())) return worker;
    return undefined;
  });
  await docker('kill', '--signal', 'KILL', victim.getId());
  const { State } = await inspect(victim.getId());
  expect([State.Running, State.ExitCode]).toEqual([false, 137]);
  expect((await client.call('GET', `/v1/status/${jobId}`)).body.data.status).not.toBe('completed');

  const heirs = workers.filter((worker) => worker !== victim);
  await until(
    'another one encodes it',
    async () => (await Promise.all(heirs.map((heir) => isEncoding(heir.getId())))).includes(true),
    60_000,
  );
  const { outputFile } = await client.completed(jobId, 120_000);
  const { bytes } = await client.bytes(`/v1/download/${jobId}`);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(outputFile.sha256);

  // Jobs that come after it through the same queues: whatever was to be told twice would have come by then.
  const later = await Promise.all([1, 2, 3].map(() => client.upload(videos.talk, request)));
  for (const answer of later) {
    await until(
      'the webhook of a later job',
      async () => (await webhooksOf(answer.body.data.jobId)).length > 0,
    );
  }
  expect((await webhooksOf(jobId)).map(({ event }) => event)).toEqual(['job.completed']);
});
