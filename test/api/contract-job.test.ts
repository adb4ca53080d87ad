import { readFile } from 'node:fs/promises';
import { Webhook } from 'standardwebhooks';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Json, type Notification, useClips, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const clip = useClips('tone.mp4', 'languages.mkv', 'silent.mp4', 'long.wav');
const service = useService({
  parts: ['worker'],
  environment: { WORKER_CONCURRENCY: '2', DOWNLOADS_AHEAD: '0' },
});

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const JOB_ID = expect.stringMatching(/^job_[0-9a-f]{16}$/);
const BATCH_ID = expect.stringMatching(/^batch_[0-9a-f]{16}$/);

let tone = '';
let languages = '';
let silent = '';
const from = (url: string): object => ({ type: 'url', url });

beforeAll(async () => {
  const { outside } = service();
  tone = await outside.file('tone.mp4', clip('tone.mp4'));
  languages = await outside.file('languages.mkv', clip('languages.mkv'));
  silent = await outside.file('silent.mp4', clip('silent.mp4'));
});

describe('A4. Answers: POST /v1/extract', () => {
  it('answers 202 with the job, where to ask for it and when', async () => {
    const { status, headers, body } = await service().call('POST', '/v1/extract', {
      json: { source: from(tone), output: { format: 'mp3' } },
    });
    expect(status).toBe(202);
    expect(body).toEqual({
      success: true,
      data: {
        jobId: JOB_ID,
        status: 'queued',
        estimatedTime: expect.any(Number),
        statusUrl: `${service().url}/v1/status/${body.data.jobId}`,
      },
    });
    expect(headers.location).toBe(body.data.statusUrl);
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(body.data.estimatedTime).toBeGreaterThan(0);
    await service().ended(body.data.jobId);
  });
});

describe('Job', () => {
  it('that waits shows null for what is not known yet', async () => {
    const slow = await Promise.all(
      [1, 2].map((n) => service().outside.stalling(`slow${n}.mp4`, clip('tone.mp4'))),
    );
    const running = await Promise.all(
      slow.map(({ url }) => service().submit({ source: from(url), output: { format: 'mp3' } })),
    );
    await Promise.all(running.map((jobId) => service().reaches(jobId, 'processing')));
    const jobId = await service().submit({ source: from(tone), output: { format: 'mp3' } });
    const { status, body } = await service().call('GET', `/v1/status/${jobId}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      data: {
        jobId,
        status: 'queued',
        progress: 0,
        currentStep: null,
        inputFile: null,
        outputFile: null,
        outputFiles: [],
        warnings: [],
        output: { format: 'mp3', copy: 'auto', normalize: false, preserveMetadata: true },
        options: { priority: 'normal' },
        source: from(tone),
        batchId: null,
        retryOf: null,
        createdAt: TIME,
        startedAt: null,
        finishedAt: null,
      },
    });
    for (const { letGo } of slow) letGo();
    await Promise.all([jobId, ...running].map((id) => service().ended(id)));
  });

  it('that runs shows its step, its progress and the seconds that are left', async () => {
    const slow = await service().outside.stalling('slow3.mp4', clip('tone.mp4'));
    const jobId = await service().submit({ source: from(slow.url), output: { format: 'mp3' } });
    const job = await service().reaches(jobId, 'processing');
    expect(job).toMatchObject({
      status: 'processing',
      currentStep: 'downloading_video',
      estimatedTimeRemaining: expect.any(Number),
      inputFile: null,
      outputFile: null,
      startedAt: TIME,
      finishedAt: null,
    });
    slow.letGo();
    await service().ended(jobId);
  });

  it('that is completed shows everything, in its units', async () => {
    const job = await service().run({
      source: from(`${languages}?token=secret`),
      output: { format: 'mp3', quality: 'low', track: 'eng', normalize: true, loudness: -20 },
      options: { filename: 'the result' },
    });
    const { status, body } = await service().call('GET', `/v1/status/${job.jobId}`);
    expect(status).toBe(200);
    expect(body).toEqual({ success: true, data: job });
    expect(job).toEqual({
      jobId: JOB_ID,
      status: 'completed',
      progress: 100,
      currentStep: 'finalizing',
      inputFile: {
        name: 'languages.mkv',
        size: expect.any(Number),
        duration: expect.closeTo(1, 1),
        format: 'mkv',
        tracks: [
          {
            ...{ index: 0, codec: 'aac', language: 'eng', channels: 2, layout: 'stereo' },
            ...{ sampleRate: 48_000, default: false, decodable: true, encrypted: false },
          },
          {
            index: 1,
            codec: 'mp3',
            language: expect.stringMatching(/^(deu|ger|de)$/),
            ...{ channels: 1, layout: 'mono', sampleRate: 44_100, default: true },
            ...{ decodable: true, encrypted: false },
          },
        ],
      },
      outputFiles: [job.outputFile],
      outputFile: {
        name: 'audio',
        filename: 'the result.mp3',
        url: expect.stringMatching(
          new RegExp(`^${service().url}/v1/download/${job.jobId}\\?expires=\\d+&signature=[0-9a-f]{64}$`),
        ),
        size: expect.any(Number),
        duration: expect.closeTo(1, 1),
        format: 'mp3',
        bitrate: expect.stringMatching(/^\d+k$/),
        codec: 'mp3',
        channels: 2,
        sampleRate: 48_000,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        expiresAt: TIME,
        copied: false,
        loudness: {
          inputLufs: expect.any(Number),
          outputLufs: expect.closeTo(-20, 0),
          truePeakDbtp: expect.any(Number),
          gainDb: expect.any(Number),
        },
        timeline: { startOffset: 0, filledSeconds: 0 },
      },
      warnings: [],
      output: {
        format: 'mp3',
        quality: 'low',
        copy: 'auto',
        track: 'eng',
        normalize: true,
        loudness: -20,
        preserveMetadata: true,
      },
      options: { filename: 'the result', priority: 'normal' },
      source: from(languages),
      batchId: null,
      retryOf: null,
      createdAt: TIME,
      startedAt: TIME,
      finishedAt: TIME,
    });
    const { inputFile, outputFile } = job;
    const source = await service().call('GET', languages, { key: null });
    expect(inputFile.size).toBe(source.bytes.length);
    const file = await service().call('GET', `/v1/download/${job.jobId}`);
    expect(outputFile.size).toBe(file.bytes.length);
    // Measured, not what was asked: the file's bits over its seconds, whatever the container adds.
    const measured = (outputFile.size * 8) / 1000 / outputFile.duration;
    expect(Number.parseInt(outputFile.bitrate, 10) / measured).toBeCloseTo(1, 0);
    expect(Math.abs(Number.parseInt(outputFile.bitrate, 10) - 96)).toBeLessThan(10);
    const { inputLufs, outputLufs, gainDb } = outputFile.loudness;
    expect(Math.abs(outputLufs - inputLufs - gainDb)).toBeLessThan(0.5);
    const day = Date.parse(outputFile.expiresAt) - Date.parse(job.finishedAt);
    expect(Math.abs(day - 86_400_000)).toBeLessThan(10_000);
    expect([job.createdAt, job.startedAt, job.finishedAt].toSorted()).toEqual([
      job.createdAt,
      job.startedAt,
      job.finishedAt,
    ]);
  });

  it('whose audio is what was asked for already is copied, and without normalising shows no loudness', async () => {
    const { jobId, outputFiles } = await service().run({
      source: from(tone),
      outputs: [
        { name: 'same', format: 'aac' },
        { name: 'anew', format: 'aac', copy: 'never' },
      ],
    });
    expect(outputFiles).toMatchObject([{ copied: true, codec: 'aac' }, { copied: false }]);
    expect(outputFiles[0]).not.toHaveProperty('loudness');
    // Nothing of it failed.
    const { status, body } = await service().call('POST', `/v1/jobs/${jobId}/retry`);
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });

  it('takes the track that is flagged as default, or the one that was asked for', async () => {
    const { outputFiles } = await service().run({
      source: from(languages),
      outputs: [undefined, 0, 1, 'en', 'de'].map((track, nth) => ({
        name: `n${nth}`,
        format: 'flac',
        track,
      })),
    });
    expect(outputFiles.map(({ channels }: Json) => channels)).toEqual([1, 2, 1, 2, 1]);
  });

  it('goes through its steps in order, its progress never down, and at most 99 before it is completed', async () => {
    const url = await service().outside.file('long.wav', clip('long.wav'));
    const jobId = await service().submit({ source: from(url), output: { format: 'mp3', normalize: true } });
    const stream = await Stream.open(jobId, service());
    await stream.ended;
    const seen: Json[] = stream.events.map(({ data }) => data);
    const order = [
      'downloading_video',
      'analyzing_video',
      'extracting_audio',
      'normalizing_audio',
      'finalizing',
    ];
    const steps: string[] = seen.map(({ currentStep }) => currentStep).filter((step) => step !== null);
    const first = [...new Set(steps)];
    expect(first).toEqual(order.filter((step) => first.includes(step)));
    expect(steps).toEqual(steps.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)));
    expect(first).toEqual(expect.arrayContaining(['extracting_audio', 'normalizing_audio', 'finalizing']));
    const numbers: number[] = seen.map(({ progress }) => progress);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(numbers.every(Number.isInteger)).toBe(true);
    expect(new Set(numbers).size).toBeGreaterThan(3);
    for (const { progress, status, estimatedTimeRemaining } of seen) {
      expect(progress === 100).toBe(status === 'completed');
      expect(estimatedTimeRemaining !== undefined).toBe(status === 'processing');
    }
    expect(seen.at(-1)?.status).toBe('completed');
  });
});

describe('Job: a failed one', () => {
  const cut = async (): Promise<string> => {
    const bytes = (await readFile(clip('long.wav'))).subarray(0, 1_000_000);
    return service().outside.on('/cut.wav', (_incoming, response) => response.end(bytes));
  };
  const text = (): string =>
    service().outside.on('/page.mp4', (_in, response) => response.end('<html>'.repeat(99)));
  const missing = (): string => `http://127.0.0.1:${service().outside.port}/missing.mp4`;
  const silentOne = (): string => silent;
  const toneOne = (): string => tone;

  it.each([
    ['whose source is missing', missing, {}, 'DOWNLOAD_FAILED', 'downloading_video', 'HTTP 404'],
    ['whose source is no media', text, {}, 'INVALID_VIDEO', 'analyzing_video', undefined],
    ['whose source was cut short', cut, {}, 'INVALID_VIDEO', 'extracting_audio', undefined],
    ['without an audio track', silentOne, {}, 'EXTRACTION_FAILED', 'analyzing_video', 'no audio stream'],
    ['without that track', toneOne, { track: 4 }, 'EXTRACTION_FAILED', 'analyzing_video', /^.*0.*aac/],
    [
      'whose bitrate the source rules out',
      toneOne,
      { format: 'ogg', bitrate: '320k', channels: 1 },
      'EXTRACTION_FAILED',
      'analyzing_video',
      /240k/,
    ],
  ] as const)('%s', async (_what, source, output, code, step, details) => {
    const job = await service().run({ source: from(await source()), output: { format: 'mp3', ...output } });
    const error = {
      code,
      message: expect.stringMatching(/\S/),
      ...(details === undefined
        ? {}
        : { details: typeof details === 'string' ? details : expect.stringMatching(details) }),
    };
    expect(job).toMatchObject({
      status: 'failed',
      currentStep: step,
      outputFile: null,
      finishedAt: TIME,
      error,
    });
    expect(job.progress).toBeLessThan(100);
    // The same as an error envelope, with 200: by status and by download.
    for (const path of ['status', 'download']) {
      const { status, headers, body } = await service().call('GET', `/v1/${path}/${job.jobId}`);
      expect({ status, body }).toEqual({ status: 200, body: { success: false, error: job.error } });
      expect(headers['cache-control']).toBe('no-store');
    }
    expect(JSON.stringify(job.error)).not.toMatch(/127\.0\.0\.1|\/tmp|ffmpeg -|Error:|\\n/);
  });

  it('is tried again as a new job that names it', async () => {
    let there = false;
    const bytes = await readFile(clip('tone.mp4'));
    const url = service().outside.on('/later.mp4', (_incoming, response) =>
      there ? response.end(bytes) : response.writeHead(404).end(),
    );
    const request = {
      source: from(url),
      output: { format: 'flac' },
      options: { filename: 'later', priority: 'high' },
    };
    const failed = await service().run(request);
    there = true;
    const { status, headers, body } = await service().call('POST', `/v1/jobs/${failed.jobId}/retry`);
    expect(status).toBe(202);
    expect(body.data).toEqual({
      jobId: JOB_ID,
      status: 'queued',
      estimatedTime: expect.any(Number),
      statusUrl: `${service().url}/v1/status/${body.data.jobId}`,
    });
    expect(headers.location).toBe(body.data.statusUrl);
    expect(body.data.jobId).not.toBe(failed.jobId);
    expect(await service().ended(body.data.jobId)).toMatchObject({
      status: 'completed',
      retryOf: failed.jobId,
      output: failed.output,
      options: failed.options,
    });
    expect((await service().job(failed.jobId)).status).toBe('failed');
  });
});

describe('Batch', () => {
  it('answers its jobs in order, and later how they do', async () => {
    const missing = `http://127.0.0.1:${service().outside.port}/missing.mp4`;
    const sources = [tone, missing, tone];
    const { status, headers, body } = await service().call('POST', '/v1/batch', {
      json: { jobs: sources.map((url) => ({ source: from(url), output: { format: 'mp3' } })) },
    });
    expect(status).toBe(202);
    expect(body).toEqual({
      success: true,
      data: {
        batchId: BATCH_ID,
        totalJobs: 3,
        jobs: [1, 2, 3].map(() => ({ jobId: JOB_ID, status: 'queued' })),
      },
      message: expect.stringMatching(/\S/),
    });
    const { batchId, jobs } = body.data;
    expect(headers.location).toBe(`${service().url}/v1/batch/${batchId}`);
    const ids: string[] = jobs.map(({ jobId }: Json) => jobId);
    const ended = await Promise.all(ids.map((jobId) => service().ended(jobId)));
    expect(ended.map((job) => job.batchId)).toEqual([batchId, batchId, batchId]);
    const answer = await service().call('GET', `/v1/batch/${batchId}`);
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        success: true,
        data: {
          batchId,
          totalJobs: 3,
          counts: { queued: 0, processing: 0, completed: 2, failed: 1 },
          jobs: [
            { jobId: ids[0], status: 'completed', progress: 100, currentStep: 'finalizing' },
            {
              jobId: ids[1],
              status: 'failed',
              progress: expect.any(Number),
              currentStep: 'downloading_video',
            },
            { jobId: ids[2], status: 'completed', progress: 100, currentStep: 'finalizing' },
          ],
        },
      },
    ]);
  });
});

describe('Events', () => {
  const verified = async ({ headers, text }: Notification): Promise<Json> => {
    const { body } = await service().call('GET', '/v1/webhooks/secret');
    return new Webhook(body.data.secret).verify(text, { ...headers });
  };

  it('job.completed carries the file, by key and by a signed address', async () => {
    const hook = service().outside.hook('completed');
    const job = await service().run({
      source: from(tone),
      output: { format: 'opus' },
      options: { webhook: `${hook.url}?token=secret`, filename: 'told' },
    });
    const [told] = await hook.got(1);
    const payload = await verified(told as Notification);
    expect(payload).toEqual({
      event: 'job.completed',
      jobId: job.jobId,
      status: 'completed',
      timestamp: job.finishedAt,
      downloadUrl: `/audio-extract/v1/download/${job.jobId}`,
      outputFile: job.outputFile,
      outputFiles: [job.outputFile],
      batchId: null,
      options: { filename: 'told', priority: 'normal', webhook: hook.url },
    });
    expect((await service().call('GET', payload.downloadUrl)).status).toBe(200);
    expect((await service().call('GET', payload.outputFile.url, { key: null })).status).toBe(200);
  });

  it('job.failed carries the error; in a batch each job has its own notification', async () => {
    const hook = service().outside.hook('batch');
    const missing = `http://127.0.0.1:${service().outside.port}/missing.mp4`;
    const { body } = await service().call('POST', '/v1/batch', {
      json: {
        webhook: hook.url,
        jobs: [tone, missing].map((url) => ({ source: from(url), output: { format: 'mp3' } })),
      },
    });
    const [completed, failed] = body.data.jobs.map(({ jobId }: Json) => jobId);
    const payloads = await Promise.all((await hook.got(2)).map(verified));
    const ended = await service().job(failed);
    expect(payloads.find(({ jobId }) => jobId === failed)).toEqual({
      event: 'job.failed',
      jobId: failed,
      status: 'failed',
      timestamp: ended.finishedAt,
      error: { code: 'DOWNLOAD_FAILED', message: expect.any(String), details: 'HTTP 404' },
      batchId: body.data.batchId,
      options: { priority: 'normal', webhook: hook.url },
    });
    expect(payloads.find(({ jobId }) => jobId === completed)).toMatchObject({
      event: 'job.completed',
      batchId: body.data.batchId,
    });
    expect(payloads).toHaveLength(2);
  });
});

describe('Get job status', () => {
  it.each([
    ['job_0123456789ABCDEF', 400, 'INVALID_JOB_ID'],
    ['job_0123456789abcde', 400, 'INVALID_JOB_ID'],
    ['0123456789abcdef', 400, 'INVALID_JOB_ID'],
    ['job_0123456789abcdef', 404, 'JOB_NOT_FOUND'],
  ])('%s answers %i %s', async (jobId, status, code) => {
    for (const path of [`status/${jobId}`, `jobs/${jobId}`, `download/${jobId}`, `jobs/${jobId}/events`]) {
      const answer = await service().call('GET', `/v1/${path}`);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, status, code]);
    }
  });
});
