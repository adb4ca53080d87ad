/** Several outputs of one job (decisions A8), as a caller meets them. */
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Hook, type Json, useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
const service = useService();
let source: Json;

beforeAll(async () => {
  source = { type: 'url', url: await service().outside.file('tone.mp4', clip('tone.mp4')) };
});

const extract = (json: Json): Promise<Answer> => service().call('POST', '/v1/extract', { json });

const OUTPUTS = [
  { name: 'full', format: 'mp3' },
  { name: 'small', format: 'opus', quality: 'low' },
  { name: 'peaks', format: 'waveform' },
];

describe('A8. Of output and outputs exactly one is given', () => {
  it.each<[string, Json, string]>([
    ['neither', {}, 'output: is required'],
    ['both', { output: { format: 'mp3' }, outputs: OUTPUTS }, 'output and outputs cannot be combined'],
  ])('%s is INVALID_REQUEST', async (_what, asked, details) => {
    const bodies = [
      (await extract({ source, ...asked })).body,
      (await service().call('POST', '/v1/batch', { json: { jobs: [{ source, ...asked }] } })).body,
    ];
    for (const { error } of bodies) {
      expect(error).toMatchObject({ code: 'INVALID_REQUEST', details: expect.stringContaining(details) });
    }
  });
});

describe('A8. outputs: each fault has its code and is told where it is', () => {
  const mp3 = { name: 'a', format: 'mp3' };
  const peaks = { name: 'b', format: 'waveform' };
  const rows: readonly (readonly [outputs: Json, code: string, details: string])[] = [
    [[], 'INVALID_OUTPUT', 'outputs: must hold at least 1 output'],
    ['mp3', 'INVALID_OUTPUT', 'outputs: '],
    [null, 'INVALID_OUTPUT', 'outputs: '],
    [
      Array.from({ length: 33 }, (_, nth) => ({ name: `n${nth}`, format: 'mp3' })),
      'INVALID_OUTPUT',
      'outputs: must hold at most 32 outputs',
    ],
    [['mp3'], 'INVALID_OUTPUT', 'outputs[0]: '],
    [[{ format: 'mp3' }], 'INVALID_REQUEST', 'outputs[0].name: is required'],
    [[{ name: 'a' }], 'INVALID_REQUEST', 'outputs[0].format: is required'],
    [[{ name: '', format: 'mp3' }], 'INVALID_OUTPUT', 'outputs[0].name: '],
    [[{ name: 'A', format: 'mp3' }], 'INVALID_OUTPUT', 'outputs[0].name: '],
    [[{ name: 'a_b', format: 'mp3' }], 'INVALID_OUTPUT', 'outputs[0].name: '],
    [[{ name: 'a'.repeat(33), format: 'mp3' }], 'INVALID_OUTPUT', 'outputs[0].name: '],
    [[{ name: 7, format: 'mp3' }], 'INVALID_OUTPUT', 'outputs[0].name: '],
    [[mp3, mp3], 'INVALID_OUTPUT', 'outputs[1].name: "a" is the name of another output'],
    [[{ name: 'a', format: 'mp4' }], 'INVALID_OUTPUT', 'outputs[0].format: must be one of mp3, aac'],
    [[peaks], 'INVALID_OUTPUT', 'outputs[0].format: must be an audio format in the first output'],
    [[mp3, { ...mp3, name: 'b', bitrate: '999k' }], 'INVALID_OUTPUT', 'outputs[1].bitrate: '],
    [[mp3, { ...mp3, name: 'b', start: 3, end: 2 }], 'INVALID_OUTPUT', 'outputs[1].end: '],
    [[mp3, { ...mp3, name: 'b', speed: 2 }], 'INVALID_REQUEST', 'outputs[1].speed: is not a field'],
    [
      [{ ...mp3, acceptTruncated: true }, { ...mp3, name: 'b' }, peaks].map((output, nth) => ({
        ...output,
        name: `n${nth}`,
      })),
      'INVALID_OUTPUT',
      'outputs[1].acceptTruncated: must be true in all audio outputs, or in none',
    ],
    ...['bitrate', 'quality', 'channels', 'copy', 'acceptTruncated', 'speed'].map(
      (field) =>
        [
          [mp3, { ...peaks, [field]: 'x' }],
          'INVALID_OUTPUT',
          `outputs[1].${field}: is not a field of a waveform`,
        ] as const,
    ),
    ...[0, 101, '20', null].map(
      (pixelsPerSecond) =>
        [[mp3, { ...peaks, pixelsPerSecond }], 'INVALID_OUTPUT', 'outputs[1].pixelsPerSecond: '] as const,
    ),
    [[mp3, { ...peaks, start: 5, end: 5 }], 'INVALID_OUTPUT', 'outputs[1].end: '],
    [[mp3, { ...peaks, track: -1 }], 'INVALID_OUTPUT', 'outputs[1].track: '],
  ];

  it.each(rows)('%j is %s', async (outputs, code, details) => {
    const { status, body } = await extract({ source, outputs });
    expect([status, body.error]).toEqual([
      400,
      expect.objectContaining({ code, details: expect.stringContaining(details) }),
    ]);
  });

  it('in a batch they stand under the job, and nothing is queued', async () => {
    const jobs = [
      { source, output: { format: 'mp3' } },
      { source, outputs: [mp3, { ...peaks, bitrate: '1k' }] },
    ];
    const { body } = await service().call('POST', '/v1/batch', { json: { jobs } });
    expect(body.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details: 'jobs[1].outputs[1].bitrate: is not a field of a waveform',
    });
  });

  it('of several faults all are told', async () => {
    const { body } = await extract({
      source,
      outputs: [{ name: 'A', format: 'mp3', loudness: 0 }, mp3, { ...mp3, bitrate: '1k' }],
    });
    for (const path of ['[0].name', '[0].loudness', '[2].bitrate', '[2].name']) {
      expect(body.error.details).toContain(`outputs${path}: `);
    }
  });
});

describe('A8. A job of several outputs', () => {
  let job: Json;
  let hook: Hook;
  beforeAll(async () => {
    hook = service().outside.hook('several');
    const options = { filename: 'talk', webhook: hook.url };
    job = await service().run({ source, outputs: OUTPUTS, options });
  });

  const download = (query: string, ask = {}): Promise<Answer> =>
    service().call('GET', `/v1/download/${job.jobId}${query}`, ask);

  it('echoes them, and has a file of each', () => {
    expect(job.output).toBeUndefined();
    expect(job.outputs).toMatchObject([
      { name: 'full', format: 'mp3', copy: 'auto' },
      { name: 'small', quality: 'low' },
      { name: 'peaks', format: 'waveform', pixelsPerSecond: 20 },
    ]);
    expect(job.outputFiles.map((file: Json) => [file.name, file.format, file.filename])).toEqual([
      ['full', 'mp3', 'talk-full.mp3'],
      ['small', 'opus', 'talk-small.opus'],
      ['peaks', 'waveform', 'talk-peaks.json'],
    ]);
    expect(job.outputFile).toEqual(job.outputFiles[0]);
  });

  it('of which each is fetched by its name, the first also without', async () => {
    for (const { name, sha256, filename, size } of job.outputFiles) {
      const { status, headers, bytes } = await download(`?name=${name}`);
      expect([status, bytes.length]).toEqual([200, size]);
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
      expect(headers).toMatchObject({
        etag: `"${sha256}"`,
        'content-disposition': `attachment; filename=${filename}`,
      });
    }
    expect((await download('')).headers.etag).toBe(`"${job.outputFile.sha256}"`);
    expect((await download('?name=peaks')).headers['content-type']).toMatch(/^application\/json/);
    const head = await service().call('HEAD', `/v1/download/${job.jobId}?name=small`);
    expect(head.headers['content-length']).toBe(String(job.outputFiles[1].size));
    const part = await download('?name=small', { headers: { range: 'bytes=2-5' } });
    expect([part.status, part.bytes.length]).toEqual([206, 4]);
  });

  it('knows no other name, and says which it has', async () => {
    const { status, body } = await download('?name=other');
    expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
    expect(body.error.message).toContain('full, small, peaks');
  });

  it('has addresses that are good for one file each', async () => {
    const [, small, peaks] = job.outputFiles;
    const ask = (url: string) => service().call('GET', url, { key: null });
    const fetched = await ask(small.url);
    expect([fetched.status, fetched.headers.etag]).toEqual([200, `"${small.sha256}"`]);
    const { searchParams, pathname } = new URL(peaks.url);
    for (const name of ['small', 'full', 'other', undefined]) {
      const query = new URLSearchParams(searchParams);
      if (name === undefined) query.delete('name');
      else query.set('name', name);
      expect((await ask(`${pathname}?${query}`)).status, name).toBe(403);
    }
  });

  it('is told to its webhook with all files', async () => {
    const [told] = await hook.got(1);
    expect(told?.json).toMatchObject({ event: 'job.completed', jobId: job.jobId });
    expect(told?.json.outputFiles.map(({ name }: Json) => name)).toEqual(['full', 'small', 'peaks']);
    expect(told?.json.outputFile).toEqual(told?.json.outputFiles[0]);
  });

  it('has no file before its end, nor after it was erased', async () => {
    const slow = await service().outside.stalling('slow-outputs.mp4', clip('tone.mp4'));
    const jobId = await service().submit({ source: { type: 'url', url: slow.url }, outputs: OUTPUTS });
    expect(await service().job(jobId)).toMatchObject({ outputFile: null, outputFiles: [] });
    slow.letGo();
    await service().ended(jobId);
    const { body } = await service().call('DELETE', `/v1/jobs/${jobId}`);
    expect(body.data.outputFiles).toHaveLength(3);
    for (const file of body.data.outputFiles) expect(file).not.toHaveProperty('url');
    const gone = await service().call('GET', `/v1/download/${jobId}?name=small`);
    expect([gone.status, gone.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
    const folder = join(service().dataDir, 'files', jobId);
    await until('no file is left', async () => (await readdir(folder).catch(() => [])).length === 0);
  });

  it('fails with any of them, and is tried again with all', async () => {
    const outputs = [OUTPUTS[0], { name: 'late', format: 'mp3', start: 3600 }];
    const jobId = await service().submit({ source, outputs });
    expect(await service().ended(jobId)).toMatchObject({
      status: 'failed',
      error: { code: 'EXTRACTION_FAILED' },
      outputFiles: [],
    });
    const { body } = await service().call('POST', `/v1/jobs/${jobId}/retry`);
    const again = await service().job(body.data.jobId);
    expect(again).toMatchObject({
      retryOf: jobId,
      outputs: [{ name: 'full' }, { name: 'late', start: 3600 }],
    });
    await service().ended(again.jobId);
  });
});

it('an output alone is named audio, and its address needs no name', async () => {
  const job = await service().run({ source, output: { format: 'mp3' } });
  expect(job.outputs).toBeUndefined();
  expect(job.outputFiles).toEqual([job.outputFile]);
  expect(job.outputFile).toMatchObject({ name: 'audio', filename: 'tone.mp3' });
  expect(new URL(job.outputFile.url).searchParams.has('name')).toBe(false);
  const named = await service().call('GET', `/v1/download/${job.jobId}?name=audio`);
  expect(named.headers.etag).toBe(`"${job.outputFile.sha256}"`);
});
