/** What a scrape of the service answers, part by part: the API, a worker and the gateway in one process, as `serve` has them. */
import { kill } from 'node:process';
import { type MetricRow, metricTable } from 'soundpost-kit/observe/metrics/table';
import { isStopped, programOf, signalIfThere, startedFromNow } from 'soundpost-testing/processes';
import { rawRequest } from 'soundpost-testing/raw-get';
import { until } from 'soundpost-testing/until';
import { afterAll, describe, expect, it } from 'vitest';
import { hear, sendJson, startTranscriber } from '../../followups/transcripts/transcriber-stub.ts';
import { TestService, useClips, useService } from '../api-fixture.ts';
import { amountOf, samplesOf } from './samples.ts';

const transcriber = await startTranscriber();
afterAll(() => transcriber.close());
const service = useService({
  parts: ['worker', 'gateway'],
  environment: { WORKER_CONCURRENCY: '2', TRANSCRIBER_URL: transcriber.url },
});
const clip = useClips('tone.mp4', 'silent.mp4', 'long.wav');

async function scrape(): Promise<string> {
  const { status, text } = await rawRequest(Number(new URL(service().url).port), 'GET', '/metrics');
  expect(status).toBe(200);
  return text;
}

/** What a metric has grown by in the meantime. */
async function growth(
  work: () => Promise<unknown>,
): Promise<(name: string, labels?: Record<string, string>) => number> {
  const before = await scrape();
  await work();
  const after = await scrape();
  return (name, labels) =>
    (amountOf(after, name, labels) ?? Number.NaN) - (amountOf(before, name, labels) ?? 0);
}

const job = (url: string, output: object = { format: 'mp3' }, options: object = {}): object => ({
  source: { type: 'url', url },
  output,
  options,
});

describe('a job', () => {
  it('that completes is counted once, with its steps, bytes, runs of ffmpeg and the requests for it', async () => {
    const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
    let size = 0;
    const grown = await growth(async () => {
      const done = await service().run(job(url, { format: 'opus', normalize: true }));
      size = done.outputFile.size;
      // BullMQ tells of the end after it has written it.
      await until(
        'the end was counted',
        async () =>
          (amountOf(await scrape(), 'soundpost_jobs_finished_total', { state: 'completed' }) ?? 0) > 0,
      );
    });
    expect(grown('soundpost_jobs_submitted_total', { outcome: 'accepted' })).toBe(1);
    expect(grown('soundpost_jobs_finished_total')).toBe(1);
    expect(grown('soundpost_jobs_finished_total', { state: 'completed', code: 'OK' })).toBe(1);
    expect(grown('soundpost_job_duration_seconds_count', { state: 'completed' })).toBe(1);
    expect(grown('soundpost_job_wait_seconds_count')).toBe(1);
    for (const step of ['download', 'await_encoder', 'analyze', 'extract', 'normalize', 'finalize']) {
      expect([step, grown('soundpost_job_step_duration_seconds_count', { step })]).toEqual([step, 1]);
    }
    expect(grown('soundpost_source_bytes_total')).toBeGreaterThan(1000);
    expect(grown('soundpost_source_bytes_saved_total')).toBe(0);
    expect(grown('soundpost_output_bytes_total', { format: 'opus' })).toBe(size);
    expect(grown('soundpost_audio_seconds_total', { format: 'opus' })).toBeCloseTo(1, 1);
    const ran = { tool: 'ffmpeg', ending: 'completed' };
    expect(grown('soundpost_ffmpeg_run_duration_seconds_count', ran)).toBeGreaterThan(0);
    const key = service().key.split('_')[1] ?? '';
    expect(grown('soundpost_key_jobs_submitted_total', { key, outcome: 'accepted' })).toBe(1);
    expect(grown('soundpost_key_jobs_finished_total', { key, state: 'completed' })).toBe(1);
    expect(grown('soundpost_key_processor_seconds_total', { key })).toBeGreaterThan(0.01);
    expect(grown('soundpost_key_processor_seconds_total')).toBeLessThan(20);
    const answered = { server: 'api', method: 'POST', route: '/v1/extract', status: '202' };
    expect(grown('http_server_request_duration_seconds_count', answered)).toBe(1);
  });

  it('that fails is counted under its code', async () => {
    const url = await service().outside.file('silent.mp4', clip('silent.mp4'));
    const code = 'EXTRACTION_FAILED';
    const grown = await growth(async () => {
      const before = amountOf(await scrape(), 'soundpost_jobs_finished_total', { code }) ?? 0;
      await service().run(job(url));
      await until(
        'the end was counted',
        async () => (amountOf(await scrape(), 'soundpost_jobs_finished_total', { code }) ?? 0) > before,
      );
    });
    expect(grown('soundpost_jobs_finished_total', { state: 'failed', code })).toBe(1);
    expect(grown('soundpost_jobs_finished_total')).toBe(1);
  });

  it('whose source is not there fetched nothing', async () => {
    const url = service().outside.on('/moody.mp4', (_incoming, response) => response.writeHead(404).end());
    const grown = await growth(async () => {
      await service().run(job(url));
      await until(
        'the end was counted',
        async () =>
          (amountOf(await scrape(), 'soundpost_jobs_finished_total', { code: 'DOWNLOAD_FAILED' }) ?? 0) > 0,
      );
    });
    expect(grown('soundpost_jobs_finished_total')).toBe(1);
    expect(grown('soundpost_source_bytes_total')).toBe(0);
    expect(grown('soundpost_job_step_duration_seconds_count', { step: 'download' })).toBe(1);
    expect(grown('soundpost_job_step_duration_seconds_count')).toBe(1);
  });

  it('shows in the queue while it runs', async () => {
    const { url, begun, letGo } = await service().outside.stalling('held.mp4', clip('tone.mp4'));
    const jobId = await service().submit(job(url));
    await until('its download has begun', begun);
    await until(
      'it shows as active',
      async () =>
        amountOf(await scrape(), 'soundpost_queue_jobs', { queue: 'extract', state: 'active' }) === 1,
    );
    letGo();
    await service().ended(jobId);
    await until(
      'it is gone',
      async () =>
        amountOf(await scrape(), 'soundpost_queue_jobs', { queue: 'extract', state: 'active' }) === 0,
    );
    expect(amountOf(await scrape(), 'soundpost_ffmpeg_processes')).toBe(0);
  });

  it('shows while its ffmpeg works: as a process, and as a place that is taken', async () => {
    const url = await service().outside.file('long.wav', clip('long.wav'));
    const started = startedFromNow();
    const jobId = await service().submit(job(url, { format: 'flac', normalize: true }));
    const pid = await until('ffmpeg works, and stands still', () => {
      const found = started().find((one) => programOf(one) === 'ffmpeg');
      if (found !== undefined) signalIfThere(found, 'SIGSTOP');
      return found !== undefined && isStopped(found) && found;
    });
    const shows = (text: string) => ({
      ffmpeg: amountOf(text, 'soundpost_ffmpeg_processes', { tool: 'ffmpeg' }),
      busy: amountOf(text, 'soundpost_worker_encoding_places', { state: 'busy' }),
      free: amountOf(text, 'soundpost_worker_encoding_places', { state: 'free' }),
    });
    try {
      const held = await until('it shows', async () => {
        const found = shows(await scrape());
        return found.busy === 1 && found;
      });
      expect(held).toEqual({ ffmpeg: 1, busy: 1, free: 1 });
    } finally {
      kill(pid, 'SIGCONT');
    }
    await service().ended(jobId);
    const after = await until('its place is free again', async () => {
      const found = shows(await scrape());
      return found.busy === 0 && found;
    });
    expect(after).toEqual({ ffmpeg: 0, busy: 0, free: 2 });
  });

  it('has its webhooks and its voice message counted by outcome', async () => {
    const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
    const hook = service().outside.hook('moody', (nth) => ({ status: nth === 1 ? 410 : 204 }));
    const voiceMessage = { instance: 'main', number: '12025550101' };
    const sent = { transport: 'loopback', outcome: 'sent' };
    const grown = await growth(async () => {
      const jobId = await service().submit(
        job(url, { format: 'voice' }, { webhook: hook.url, voiceMessage }),
      );
      await service().ended(jobId);
      await hook.got(2);
      await until('both were counted', async () => {
        const text = await scrape();
        const delivered = amountOf(text, 'soundpost_webhook_attempts_total', { outcome: 'delivered' }) ?? 0;
        return delivered > 0 && (amountOf(text, 'soundpost_webhooks_given_up_total') ?? 0) > 0;
      });
    });
    const webhooks = (outcome: string) => grown('soundpost_webhook_attempts_total', { kind: 'job', outcome });
    expect([webhooks('gone'), webhooks('delivered'), webhooks('rejected')]).toEqual([1, 1, 0]);
    expect(grown('soundpost_webhooks_given_up_total', { kind: 'job' })).toBe(1);
    expect(grown('soundpost_voice_messages_total', { status: 'sent' })).toBe(1);
    expect(grown('soundpost_voice_attempts_total', { outcome: 'sent' })).toBe(1);
    expect(grown('soundpost_gateway_sends_total', sent)).toBe(1);
    expect(grown('soundpost_gateway_send_duration_seconds_count', { transport: 'loopback' })).toBe(1);
  });
});

it('what is put to destinations is counted by outcome', async () => {
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  let puts = 0;
  const destination = service().outside.on('/bucket', (request, response) => {
    puts += 1;
    request.resume();
    response.writeHead(puts === 1 ? 503 : 200).end();
  });
  const grown = await growth(async () => {
    await service().submit({ ...job(url), destination: { url: destination } });
    await until(
      'the second try was counted',
      async () =>
        (amountOf(await scrape(), 'soundpost_destinations_total', { status: 'completed' }) ?? 0) > 0,
    );
  });
  const tries = (outcome: string) => grown('soundpost_destination_attempts_total', { outcome });
  expect([tries('failed'), tries('taken'), tries('refused')]).toEqual([1, 1, 0]);
  expect(grown('soundpost_destination_attempt_duration_seconds_count', {})).toBe(2);
});

it('what is transcribed is counted, part by part and in the end', async () => {
  const counted = async (name: string, labels: Record<string, string> = {}) =>
    amountOf(await scrape(), `soundpost_${name}`, labels) ?? 0;
  const ends = (status: string) =>
    // Patience alone: the transcriber is asked again after some seconds.
    until(`one ${status}`, async () => (await counted('transcripts_total', { status })) === 1);
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const outputs = [
    { name: 'full', format: 'mp3' },
    { name: 'words', format: 'transcript' },
  ];
  const submit = () => service().submit({ source: { type: 'url', url }, outputs });
  transcriber.answer = (response, asked, nth) =>
    nth === 1 ? sendJson(response, 429, {}) : hear(response, asked, nth);
  await submit();
  await ends('completed');
  transcriber.answer = (response) => sendJson(response, 400, {});
  await submit();
  await ends('failed');
  const parts = (outcome: string) => counted('transcript_parts_total', { outcome });
  expect([await parts('heard'), await parts('not_now'), await parts('refused')]).toEqual([1, 1, 1]);
  expect(await counted('transcript_part_duration_seconds_count')).toBe(3);
  expect(await counted('transcripts_total')).toBe(2);
});

it('the webhook of an instance is counted apart from those of jobs', async () => {
  const hook = service().outside.hook('instance', (nth) => ({ status: nth === 1 ? 410 : 204 }));
  const webhook = { enabled: true, url: hook.url, events: ['messages.upsert'] };
  expect((await service().gateway('POST', '/webhook/set/main', { webhook })).status).toBe(201);
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const gone = { kind: 'instance', outcome: 'gone' };
  const grown = await growth(async () => {
    const audio = { number: '12025550101', audio: url };
    expect((await service().gateway('POST', '/message/sendMessengerAudio/main', audio)).status).toBe(200);
    await until(
      'the try was counted',
      async () => (amountOf(await scrape(), 'soundpost_webhook_attempts_total', gone) ?? 0) > 0,
    );
  });
  expect(grown('soundpost_webhook_attempts_total', { kind: 'job' })).toBe(0);
  expect(grown('soundpost_webhook_attempt_duration_seconds_count', { kind: 'instance' })).toBeGreaterThan(0);
});

it('a worker that takes no jobs because its disk is nearly full says so', async () => {
  expect(amountOf(await scrape(), 'soundpost_worker_disk_low')).toBe(0);
  const full = await TestService.start({ environment: { DISK_RESERVE_BYTES: String(2 ** 50) } });
  try {
    await until('it shows', async () => {
      const { text } = await rawRequest(Number(new URL(full.url).port), 'GET', '/metrics');
      return amountOf(text, 'soundpost_worker_disk_low') === 1;
    });
  } finally {
    await full.close();
  }
});

it('the instances of the gateway show by network and state', async () => {
  const text = await scrape();
  expect(amountOf(text, 'soundpost_gateway_instances', { transport: 'loopback', state: 'open' })).toBe(1);
});

it('nothing of a path, a query or a caller becomes a label', async () => {
  const secret = 'canary5f0c';
  await service().call('GET', `/v1/status/job_${secret}`);
  await service().call('GET', `/${secret}?token=${secret}`, { key: secret });
  await service().call('GET', `/audio-extract/v1/status/${secret}`);
  await service().gateway('GET', `/instance/connectionState/${secret}`);
  await service().gateway('GET', `/INBOX/api/${secret}`);
  expect((await service().gateway('GET', '/INBOX/api/instances/main/chats')).status).toBe(200);
  await service().call('PROPFIND', `/v1/extract`);
  const text = await scrape();
  expect(text).not.toContain(secret);
  expect(text).not.toContain('INBOX');
  expect(amountOf(text, 'http_server_request_duration_seconds_count', { method: 'other' })).toBe(1);
});

it('every metric stands in the table, and every label has a value that the table lists', async () => {
  const rows: Readonly<Record<string, MetricRow>> = metricTable;
  const ours = samplesOf(await scrape()).filter(({ name }) => /^(soundpost|http)_/.test(name));
  expect(ours.length).toBeGreaterThan(100);
  const faults = ours.flatMap(({ name, labels }) => {
    const row = rows[name] ?? rows[name.replace(/_(bucket|sum|count)$/, '')];
    if (row === undefined) return [`${name} is not in the table`];
    return Object.entries(labels)
      .filter(([label]) => label !== 'le')
      .flatMap(([label, value]) => {
        const values = row.labels[label];
        const isListed = typeof values === 'string' || values?.includes(value) === true;
        return isListed ? [] : [`${name}{${label}="${value}"}`];
      });
  });
  expect(faults).toEqual([]);
});

it('a Redis that hangs is told, and the rest is answered all the same', async () => {
  kill(service().redis.pid, 'SIGSTOP');
  try {
    // The queues were read a moment ago.
    const text = await until('the outage shows', async () => {
      const now = await scrape();
      return amountOf(now, 'soundpost_redis_up') === 0 && now;
    });
    expect(amountOf(text, 'soundpost_queue_jobs')).toBeUndefined();
    expect(amountOf(text, 'soundpost_queue_oldest_job_age_seconds')).toBeUndefined();
    expect(amountOf(text, 'soundpost_jobs_submitted_total', { outcome: 'accepted' })).toBeGreaterThan(0);
  } finally {
    kill(service().redis.pid, 'SIGCONT');
  }
  await until('it shows that it is back', async () => {
    const text = await scrape();
    return amountOf(text, 'soundpost_redis_up') === 1 && amountOf(text, 'soundpost_queue_jobs') !== undefined;
  });
});
