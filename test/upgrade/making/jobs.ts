/** Jobs of the first edition in every state, with what belongs to them: keys, secrets, uploads, announcements, idempotency records. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client, type Json } from '../../client.ts';
import { until } from '../../until.ts';
import type { JobsManifest } from '../manifest.ts';
import { ada, FIXTURE } from '../outside.ts';
import { type FirstEdition, kill } from './processes.ts';
import { beginTus, interrupt, keyed, keyedUpload, makeKeys, secretOf } from './requests.ts';

const VOICE = { instance: 'main', number: ada.number };

/** @param stopGateway ends the gateway, and resolves when nobody has its port any more */
export async function makeJobs(
  edition: FirstEdition,
  addresses: { readonly gateway: string; readonly apiPort: string },
  stopGateway: () => Promise<void>,
): Promise<JobsManifest> {
  const { outside, redis } = edition;
  const { hooks, videos } = outside;
  const api = edition.start('api', { API_PORT: addresses.apiPort });
  const base = await api.says(/^API\s+(http\S+)/m);
  const worker = edition.start('worker', {
    PUBLIC_URL: base,
    GATEWAY_URL: addresses.gateway,
    WORKER_CONCURRENCY: '2',
    DOWNLOADS_AHEAD: '0',
    JOB_LOCK_SECONDS: '5',
  });
  await worker.says(/^Worker/m);

  const keys = await makeKeys(edition);
  const alice = new Client(base, keys.alice);
  const bob = new Client(base, keys.bob);
  const rotated = new Client(base, keys.rotated);
  const secrets = {
    alice: await secretOf(alice, 'GET'),
    bob: await secretOf(bob, 'GET'),
    rotatedBefore: await secretOf(rotated, 'GET'),
    rotated: await secretOf(rotated, 'POST'),
  };
  for (const secret of Object.values(secrets)) hooks.trust(secret);
  const job = (more: object = {}, { webhook = hooks.url, ...options }: Json = {}): object => ({
    source: { type: 'url', url: videos.url('talk.mp4') },
    output: { format: 'mp3' },
    options: { webhook, ...options },
    ...more,
  });
  const told = (jobId: string, event: string): Promise<boolean> =>
    until(`${event} of ${jobId}`, () =>
      hooks.calls.some(({ json }) => json.jobId === jobId && json.event === event),
    );

  // What has ended.
  const withVoice = await alice.submit(job({}, { voiceMessage: VOICE }));
  const extract = await keyed(bob, '/v1/extract', 'a job of bob', job({ output: { format: 'opus' } }));
  const missing = await alice.submit(job({ source: { type: 'url', url: videos.url('missing.mp4') } }));
  await alice.completed(withVoice);
  await bob.completed(extract.answer.data.jobId);
  await alice.ended(missing);
  await told(withVoice, 'voice.updated');
  await told(extract.answer.data.jobId, 'job.completed');
  await told(missing, 'job.failed');
  await until('the message to arrive', async () => {
    const { body } = await alice.call('GET', `/v1/jobs/${withVoice}`);
    return body.data.voiceMessage.messageStatus === 'DELIVERY_ACK';
  });

  // Uploads.
  const upload = await keyedUpload(bob, base, keys.bob, 'an upload of bob');
  const bytes = await readFile(join(FIXTURE, 'talk.mp4'));
  const incomplete = await beginTus(base, keys.bob, bytes);

  // Announcements that nobody has taken yet.
  await stopGateway();
  const voiceRefused = await alice.submit(job({ output: { format: 'm4a' } }, { voiceMessage: VOICE }));
  await told(voiceRefused, 'job.completed');
  await until('the gateway to be missed', async () => {
    const { body } = await alice.call('GET', `/v1/jobs/${voiceRefused}`);
    return body.data.voiceMessage.attempts > 0;
  });
  hooks.answer = () => 503;
  const webhookRefused = await rotated.submit(job({ output: { format: 'flac' } }));
  await until('the webhook to be refused', async () => {
    const { body } = await rotated.call('GET', `/v1/jobs/${webhookRefused}/deliveries`);
    return body.data.deliveries[0]?.attempts.length > 0;
  });

  const replayed = `/v1/jobs/${missing}/deliveries`;
  await alice.call('POST', `${replayed}/${missing}-webhook/replay`);
  await until('the replay to be refused', async () => {
    const { body } = await alice.call('GET', replayed);
    return body.data.deliveries[0]?.attempts.length === 2;
  });

  // Announcements under way when their worker dies: neither is answered.
  hooks.answer = () => 'silent';
  const webhookUnderWay = await bob.submit(job({ output: { format: 'wav' } }));
  await told(webhookUnderWay, 'job.completed');
  const silent = createServer().listen(Number(new URL(addresses.gateway).port), '127.0.0.1');
  const asked = once(silent, 'connection');
  const voiceUnderWay = await alice.submit(job({}, { voiceMessage: VOICE }));
  await asked;

  // Jobs whose worker dies in their middle; one of them is wanted no more.
  videos.hold();
  const active = await alice.submit(job());
  const cancelledActive = await bob.submit(job());
  await until('both to be at work', async () => {
    const states = await Promise.all([
      alice.call('GET', `/v1/jobs/${active}`),
      bob.call('GET', `/v1/jobs/${cancelledActive}`),
    ]);
    return states.every(({ body }) => body.data.currentStep === 'downloading_video');
  });
  await kill(worker);
  silent.close();
  videos.letGo();
  await bob.call('DELETE', `/v1/jobs/${cancelledActive}`);

  // What waits.
  const owners = new Map<string, 'alice' | 'bob' | 'rotated'>();
  const wait = async (
    owner: 'alice' | 'bob' | 'rotated',
    client: Client,
    request: object,
  ): Promise<string> => {
    const jobId = await client.submit(request);
    owners.set(jobId, owner);
    return jobId;
  };
  for (const format of ['mp3', 'aac', 'ogg', 'opus']) {
    await wait('alice', alice, job({ output: { format } }, { voiceMessage: VOICE }));
  }
  await wait('bob', bob, job({ source: { type: 'upload', file: upload.answer.data.file } }));
  await wait('bob', bob, job({ output: { format: 'voice' } }));
  await wait('alice', alice, job({}, { priority: 'low' }));
  await wait('alice', alice, job({}, { priority: 'high' }));
  await wait('rotated', rotated, { ...job(), options: {} });
  const batch = await bob.call('POST', '/v1/batch', {
    webhook: hooks.url,
    jobs: [
      { ...job(), options: {} },
      { ...job({ output: { format: 'wav' } }), options: {} },
    ],
  });
  for (const { jobId } of batch.body.data.jobs) owners.set(jobId, 'bob');
  const cancelledWaiting = await alice.submit(job());
  await alice.call('DELETE', `/v1/jobs/${cancelledWaiting}`);
  const interrupted = await interrupt(edition, alice, keys.alice, job({ output: { format: 'flac' } }));
  owners.set(interrupted.jobId, 'alice');

  const show = async (client: Client, jobId: string): Promise<Json> =>
    (await client.call('GET', `/v1/jobs/${jobId}`)).body.data;
  const deliveries = async (client: Client, jobId: string): Promise<Json> =>
    (await client.call('GET', `/v1/jobs/${jobId}/deliveries`)).body.data.deliveries;
  const bobsJob = extract.answer.data.jobId;
  const finished = [
    {
      owner: 'alice' as const,
      job: await show(alice, withVoice),
      deliveries: await deliveries(alice, withVoice),
    },
    { owner: 'bob' as const, job: await show(bob, bobsJob), deliveries: await deliveries(bob, bobsJob) },
  ];
  const failed = await show(alice, missing);
  const cancelled = await show(alice, cancelledWaiting);
  await kill(api);
  // BullMQ's score of a waiting job is its place times 2^32, plus a counter.
  const scored = await redis.zrange('{soundpost}:extract:prioritized', '0', '-1', 'WITHSCORES');
  const waiting = scored.flatMap((jobId, index) =>
    index % 2 === 0
      ? [
          {
            jobId,
            owner: owners.get(jobId) ?? 'alice',
            place: Math.floor(Number(scored[index + 1]) / 2 ** 32),
          },
        ]
      : [],
  );
  return {
    keys,
    secrets,
    finished,
    failed,
    cancelled,
    unfinished: {
      active,
      cancelledActive,
      cancelledWaiting,
      webhookRefused,
      webhookUnderWay,
      voiceRefused,
      voiceUnderWay,
    },
    waiting,
    virtualTime: Number(await redis.get('{soundpost}:sp:virtual-time')),
    batchId: batch.body.data.batchId,
    uploads: {
      complete: { file: upload.answer.data.file, size: upload.answer.data.size },
      incomplete,
    },
    idempotency: { extract, upload, interrupted },
  };
}
