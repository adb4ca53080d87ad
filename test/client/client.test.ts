import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient, SoundpostError } from 'soundpost-client';
import { describe, expect, it, vi } from 'vitest';
import { useClips, useService } from '../api/api-fixture.ts';

const clip = useClips('tone.mp4', 'silent.mp4');
const service = useService();
const client = (apiKey = service().key) => createClient({ baseUrl: `${service().url}/`, apiKey });
const toneUrl = () => service().outside.file('tone.mp4', clip('tone.mp4'));
const silentUrl = () => service().outside.file('silent.mp4', clip('silent.mp4'));

/** What a call was refused with. */
async function refusal(call: Promise<unknown>): Promise<SoundpostError> {
  const outcome = await call.then(
    () => new Error('the call succeeded'),
    (error: unknown) => error,
  );
  if (outcome instanceof SoundpostError) {
    return outcome;
  }
  throw outcome;
}

describe('a client', () => {
  it('extracts from a URL, tells the progress, and fetches the file', async () => {
    const { jobId, status, statusUrl } = await client().extract({
      source: { type: 'url', url: await toneUrl() },
      output: { format: 'mp3' },
    });
    expect([status, statusUrl]).toEqual(['queued', `${service().url}/v1/status/${jobId}`]);
    const seen: number[] = [];
    const job = await client().waitFor(jobId, { onProgress: ({ progress }) => seen.push(progress) });
    expect(seen.at(-1)).toBe(100);
    expect(seen).toEqual(seen.toSorted((one, other) => one - other));
    const response = await client().download(jobId);
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(job.outputFile.sha256);
  });

  it('sends a file along, and fetches a part of what comes out', async () => {
    const { jobId } = await client().extract({
      file: new File([await openAsBlob(clip('tone.mp4'))], 'täne.mp4'),
      output: { format: 'flac' },
      options: { priority: 'low' },
    });
    const job = await client().waitFor(jobId);
    expect(job.inputFile?.name).toBe('täne.mp4');
    expect([job.outputFile.filename, job.options.priority]).toEqual(['täne.flac', 'low']);
    const part = await client().download(jobId, { range: { start: 0, end: 3 } });
    expect([part.status, await part.text()]).toEqual([206, 'fLaC']);
    expect((await client().download(jobId, { range: { start: 4 } })).headers.get('content-range')).toBe(
      `bytes 4-${job.outputFile.size - 1}/${job.outputFile.size}`,
    );
  });

  it('fetches each of several outputs by its name', async () => {
    const { jobId } = await client().extract({
      source: { type: 'url', url: await toneUrl() },
      outputs: [
        { name: 'full', format: 'mp3' },
        { name: 'peaks', format: 'waveform' },
      ],
    });
    const { outputFile, outputFiles } = await client().waitFor(jobId);
    expect(outputFiles.map(({ name }) => name)).toEqual(['full', 'peaks']);
    expect(outputFile.name).toBe('full');
    const peaks = await client().download(jobId, { name: 'peaks' });
    expect(await peaks.json()).toMatchObject({ version: 2, channels: 1, bits: 8 });
    expect((await client().download(jobId)).headers.get('etag')).toBe(`"${outputFile.sha256}"`);
    expect((await refusal(client().download(jobId, { name: 'other' }))).code).toBe('NOT_FOUND');
  });

  it('throws what a job failed with, wherever its result is asked for, and tries it again', async () => {
    const { jobId } = await client().extract({
      source: { type: 'url', url: await silentUrl() },
      output: { format: 'mp3' },
    });
    const failure = await refusal(client().waitFor(jobId));
    expect(failure).toMatchObject({ code: 'EXTRACTION_FAILED', httpStatus: 200, details: 'no audio stream' });
    expect(failure.message).toContain('EXTRACTION_FAILED');
    expect((await refusal(client().status(jobId))).code).toBe('EXTRACTION_FAILED');
    expect((await refusal(client().download(jobId))).code).toBe('EXTRACTION_FAILED');
    expect((await client().job(jobId)).error?.code).toBe('EXTRACTION_FAILED');
    const again = await client().retry(jobId);
    expect((await client().job(again.jobId)).retryOf).toBe(jobId);
  });

  it('throws what a request was refused for, with everything that helps', async () => {
    const error = await refusal(
      // @ts-expect-error the compiler knows the formats
      client().extract({ source: { type: 'url', url: await toneUrl() }, output: { format: 'mp9' } }),
    );
    expect(error).toMatchObject({ name: 'SoundpostError', code: 'INVALID_OUTPUT', httpStatus: 400 });
    expect(error.details).toContain('output.format');
    expect(error.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await refusal(client('sp_wrong').usage())).code).toBe('UNAUTHORIZED');
    expect((await refusal(client('sp_wrong').waitFor('job_0000000000000000'))).code).toBe('UNAUTHORIZED');
    expect((await refusal(client().waitFor('job_0000000000000000'))).code).toBe('JOB_NOT_FOUND');
  });

  it('keeps an id from elsewhere from leading to another operation', async () => {
    expect((await refusal(client().job('../usage'))).code).toBe('INVALID_JOB_ID');
  });

  it('is told to wait by a file that is not there yet, and cancels what it waits for', async () => {
    const source = await service().outside.stalling('endless.mp4', clip('tone.mp4'));
    const { jobId } = await client().extract({
      source: { type: 'url', url: source.url },
      output: { format: 'mp3' },
    });
    const early = await refusal(client().download(jobId));
    expect([early.code, early.httpStatus]).toEqual(['JOB_NOT_COMPLETED', 202]);
    expect(early.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    const waiting = refusal(client().waitFor(jobId));
    expect((await client().cancel(jobId)).status).toBe('failed');
    expect((await waiting).code).toBe('JOB_CANCELLED');
    source.letGo();
  });

  it('stops waiting when it is told to, with the reason given', async () => {
    const source = await service().outside.stalling('slow.mp4', clip('tone.mp4'));
    const { jobId } = await client().extract({
      source: { type: 'url', url: source.url },
      output: { format: 'mp3' },
    });
    const stop = new AbortController();
    const reason = new Error('enough');
    const waiting = client().waitFor(jobId, { signal: stop.signal, onProgress: () => stop.abort(reason) });
    await expect(waiting).rejects.toBe(reason);
    source.letGo();
    expect((await client().waitFor(jobId)).status).toBe('completed');
  });

  it('lets an error of the caller’s own onProgress through', async () => {
    const { jobId } = await client().extract({
      source: { type: 'url', url: await toneUrl() },
      output: { format: 'mp3' },
    });
    const own = new TypeError('of the caller');
    const onProgress = () => {
      throw own;
    };
    await expect(client().waitFor(jobId, { onProgress })).rejects.toBe(own);
  });

  it('submits the same once under one idempotency key', async () => {
    const request = { source: { type: 'url', url: await toneUrl() }, output: { format: 'wav' } } as const;
    const one = await client().extract(request, { idempotencyKey: 'only once' });
    const same = await client().extract(request, { idempotencyKey: 'only once' });
    const other = await client().extract(request);
    expect(same.jobId).toBe(one.jobId);
    expect(other.jobId).not.toBe(one.jobId);
  });

  it('submits batches, and lists jobs', async () => {
    const url = await toneUrl();
    const own = client(await service().newKey());
    const { batchId, totalJobs, jobs } = await own.batch({
      jobs: [
        { source: { type: 'url', url }, output: { format: 'mp3' } },
        { source: { type: 'url', url }, output: { format: 'opus' } },
      ],
    });
    expect(totalJobs).toBe(2);
    const done = await Promise.all(jobs.map(({ jobId }) => own.waitFor(jobId)));
    expect(done.map(({ outputFile }) => outputFile.format)).toEqual(['mp3', 'opus']);
    expect((await own.batchState(batchId)).counts.completed).toBe(2);
    const page = await own.jobs({ status: 'completed', limit: 1 });
    expect(page.jobs).toHaveLength(1);
    const { jobs: next } = await own.jobs({ limit: 1, cursor: page.nextCursor ?? '' });
    expect([page.jobs[0]?.jobId, next[0]?.jobId].toSorted()).toEqual(
      jobs.map(({ jobId }) => jobId).toSorted(),
    );
    expect((await own.usage()).unfinishedJobs.used).toBe(0);
  });

  it('shows and rotates the secret of webhooks, and tries a receiver', async () => {
    const hook = service().outside.hook('tried');
    const own = client(await service().newKey());
    const { secret } = await own.webhookSecret();
    expect(secret).toMatch(/^whsec_/);
    const rotated = await own.rotateWebhookSecret();
    expect(rotated.secret).not.toBe(secret);
    expect(await own.webhookSecret()).toEqual(rotated);
    expect(await own.testWebhook(hook.url)).toEqual({ status: 204, latencyMs: expect.any(Number) });
    const [told] = await hook.got(1);
    expect(told?.json.event).toBe('webhook.test');
    expect((await refusal(own.testWebhook(`${hook.url}-not`))).code).toBe('INVALID_WEBHOOK');
  });

  it('stores a file for any number of jobs', async () => {
    const path = clip('tone.mp4');
    const upload = await client().uploads.create(path);
    expect([upload.size, upload.complete]).toEqual([(await stat(path)).size, true]);
    expect(await client().uploads.get(upload.file)).toEqual(upload);
    const { jobId } = await client().extract({
      source: { type: 'upload', file: upload.file },
      output: { format: 'm4a' },
    });
    expect((await client().waitFor(jobId)).outputFile.filename).toBe('tone.m4a');
    expect((await client().uploads.delete(upload.file)).file).toBe(upload.file);
    expect((await refusal(client().uploads.get(upload.file))).code).toBe('UPLOAD_NOT_FOUND');
  });
});

describe('a path instead of a file', () => {
  it.each([
    ['of nothing', join(import.meta.dirname, 'missing.mp4'), /ENOENT.*missing\.mp4/],
    ['of a folder', import.meta.dirname, /^file: .*client is not a regular file$/],
  ])('%s: refused before anything is sent', async (_, path, message) => {
    const fetch = vi.fn<typeof globalThis.fetch>();
    const own = createClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'sp_x', fetch });
    await expect(own.extract({ file: path, output: { format: 'mp3' } })).rejects.toThrow(message);
    expect(fetch).not.toHaveBeenCalled();
  });
});

describe('events of all jobs', () => {
  it('come as they happen, and end with what they were aborted with', async () => {
    const leaving = new AbortController();
    const own = client(await service().newKey());
    let submitted: string | undefined;
    const submit = async (): Promise<void> => {
      const url = await toneUrl();
      submitted = (await own.extract({ source: { type: 'url', url }, output: { format: 'mp3' } })).jobId;
    };
    const seen: string[] = [];
    const watching = async (): Promise<void> => {
      for await (const { jobId, status } of own.events({
        signal: leaving.signal,
        onReset: () => void submit(),
      })) {
        seen.push(jobId);
        if (status === 'completed') leaving.abort(new Error('seen enough'));
      }
    };
    await expect(watching()).rejects.toThrow('seen enough');
    expect(new Set(seen)).toEqual(new Set([submitted]));
  });

  it('are refused to a key that may not read', async () => {
    const weak = client(await service().newKey({ scopes: ['extract'] }));
    const [first] = [weak.events()[Symbol.asyncIterator]().next()];
    expect((await refusal(first)).code).toBe('FORBIDDEN');
  });
});

describe('keys', () => {
  it('are made, listed, rotated and revoked', async () => {
    const { key, ...made } = await client().keys.create({ name: 'made', scopes: ['read', 'admin'] });
    expect((await client().keys.list()).keys).toContainEqual(made);
    expect((await client(key).usage()).key.name).toBe('made');
    const rotated = await client(key).keys.rotate(made.id);
    expect((await client(rotated.key).usage()).key.id).toBe(made.id);
    expect(await client().keys.revoke(made.id)).toEqual({ ...made, status: 'revoked' });
    expect((await refusal(client(key).usage())).code).toBe('UNAUTHORIZED');
    expect((await refusal(client(rotated.key).keys.list())).code).toBe('UNAUTHORIZED');
  });
});
