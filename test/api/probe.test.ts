/** A probe says what is in the source, and makes no file (decisions A2), as a caller meets it. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Hook, type Json, useClips, useService } from './api-fixture.ts';

const clip = useClips('languages.mkv');
const service = useService();
let source: Json;

beforeAll(async () => {
  source = { type: 'url', url: await service().outside.file('languages.mkv', clip('languages.mkv')) };
});

const output = { format: 'probe' };
const voiceMessage = { instance: 'main', number: '1' };
const destination = { url: 'https://bucket.example/talk.mp3' };
const extract = (json: Json): Promise<Answer> => service().call('POST', '/v1/extract', { json });

describe('A2. output.format probe takes no other field, and nothing that needs a file', () => {
  const BESIDE = 'must not be probe, which makes no file; use output instead of outputs';
  it.each<[asked: Json, code: string, details: string]>([
    [
      { output: { ...output, quality: 'low', destination } },
      'INVALID_OUTPUT',
      'output.quality: is not a field of a probe; output.destination: is not a field of a probe',
    ],
    [{ output: { format: 'PROBE' } }, 'INVALID_OUTPUT', 'output.format: must be one of mp3, aac'],
    [
      {
        outputs: [
          { name: 'a', format: 'mp3' },
          { name: 'b', ...output },
        ],
      },
      'INVALID_OUTPUT',
      `outputs[1].format: ${BESIDE}`,
    ],
    [{ outputs: [{ name: 'a', ...output }] }, 'INVALID_OUTPUT', `outputs[0].format: ${BESIDE}`],
    [
      { output, options: { voiceMessage } },
      'INVALID_REQUEST',
      'options.voiceMessage: must not be given: a probe makes no file to send',
    ],
    [
      { output, destination },
      'INVALID_REQUEST',
      'destination: must not be given: a probe makes no file to put there',
    ],
  ])('%j is %s', async (asked, code, details) => {
    const { status, body } = await extract({ source, ...asked });
    expect([status, body.error]).toEqual([
      400,
      expect.objectContaining({ code, details: expect.stringContaining(details) }),
    ]);
  });

  it('in a batch, each fault is told with its job', async () => {
    const batch = async (json: Json) => (await service().call('POST', '/v1/batch', { json })).body.error;
    expect(
      await batch({
        jobs: [
          { source, output: { format: 'mp3' } },
          { source, output: { ...output, track: 1 } },
        ],
      }),
    ).toMatchObject({
      code: 'INVALID_OUTPUT',
      details: 'jobs[1].output.track: is not a field of a probe',
    });
    expect(
      await batch({
        jobs: [
          { source, output: { format: 'mp3' } },
          { source, output },
        ],
        voiceMessage,
      }),
    ).toMatchObject({
      code: 'INVALID_REQUEST',
      details: 'voiceMessage: must not be given: jobs[1] is a probe, which makes no file to send',
    });
  });

  it('of an output of no known format the other faults are told as well', async () => {
    const { body } = await extract({ source, output: { format: 'mp9', quality: 'best', codec: 'x' } });
    const paths = body.error.details.split('; ').map((fault: string) => fault.split(': ')[0]);
    expect(paths.toSorted()).toEqual(['output.codec', 'output.format', 'output.quality']);
  });
});

describe('A2. A probe', () => {
  let job: Json;
  let hook: Hook;
  beforeAll(async () => {
    hook = service().outside.hook('probe');
    job = await service().run({ source, output, options: { webhook: hook.url } });
  });

  it('ends after its analysis with what is in the source', async () => {
    expect(job).toMatchObject({
      status: 'completed',
      progress: 100,
      currentStep: 'analyzing_video',
      output,
      outputFile: null,
      outputFiles: [],
      warnings: [],
      inputFile: {
        name: 'languages.mkv',
        format: 'mkv',
        tracks: [
          { index: 0, layout: expect.any(String), decodable: true, encrypted: false },
          { index: 1, language: expect.any(String) },
        ],
      },
    });
    const made = await service().run({ source, output: { format: 'mp3' } });
    // Packets, which are counted here, end up to one of them later than what they decode to.
    const duration = expect.closeTo(made.inputFile.duration, 1);
    expect(job.inputFile).toEqual({ ...made.inputFile, duration });
    expect(await readdir(join(service().dataDir, 'files', job.jobId)).catch(() => 'none')).toBe('none');
  });

  it('is told to its webhook with what is in the source', async () => {
    const [told] = await hook.got(1);
    expect(told?.json).toMatchObject({
      event: 'job.completed',
      jobId: job.jobId,
      inputFile: job.inputFile,
      downloadUrl: null,
      outputFile: null,
      outputFiles: [],
    });
  });

  it('has nothing to download or to send', async () => {
    for (const query of ['', '?name=audio', '?rendition=voice']) {
      const { status, body } = await service().call('GET', `/v1/download/${job.jobId}${query}`);
      expect([status, body.error]).toEqual([
        404,
        { code: 'NOT_FOUND', message: expect.stringContaining('this job is a probe and has no file') },
      ]);
    }
    const sent = await service().call('POST', `/v1/jobs/${job.jobId}/voice-message`, { json: voiceMessage });
    expect([sent.status, sent.body.error]).toEqual([
      400,
      { code: 'INVALID_REQUEST', message: 'this job has no audio to send' },
    ]);
  });

  it('is listed, and stays as it is when its files are to be erased', async () => {
    const { body } = await service().call('GET', '/v1/jobs?q=languages.mkv');
    expect(body.data.jobs.map(({ jobId }: Json) => jobId)).toContain(job.jobId);
    const erased = await service().call('DELETE', `/v1/jobs/${job.jobId}`);
    expect([erased.status, erased.body.data]).toEqual([
      200,
      expect.objectContaining({ status: 'completed', inputFile: job.inputFile, outputFile: null }),
    ]);
  });

  it('is one of a batch like any job', async () => {
    const { body } = await service().call('POST', '/v1/batch', {
      json: {
        jobs: [
          { source, output },
          { source, output: { format: 'mp3' } },
        ],
      },
    });
    const { batchId, jobs } = body.data;
    await Promise.all(jobs.map(({ jobId }: Json) => service().ended(jobId)));
    const batch = await service().call('GET', `/v1/batch/${batchId}`);
    expect(batch.body.data.jobs.map(({ currentStep }: Json) => currentStep)).toEqual([
      'analyzing_video',
      'finalizing',
    ]);
  });
});
