/** A job whose upload lies in a bucket: it is copied to the workspace, where there is room for it. */
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { DiskSpace } from 'soundpost-kit/storage/disk-space';
import { type StorageOnS3, storageOnS3 } from 'soundpost-testing/s3/s3-fixture';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExtractPayload, filesOf, storageKeysOf } from '../../src/jobs/payloads.ts';
import { uploadStorageKey } from '../../src/jobs/uploads/record.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import { type Made, madeOf } from '../jobs/job-result.ts';
import { makeSurroundings, type Surroundings } from './worker-fixture.ts';

const UPLOAD = { type: 'upload', file: 'upl_0123456789abcdef', name: 'talk.mp4' } as const;

const folder = mediaFolder();
let on: StorageOnS3;
let around: Surroundings;

beforeAll(async () => {
  on = await storageOnS3();
  around = await makeSurroundings();
  await folder.place('speech.mp4');
  await on.storage.write(uploadStorageKey(UPLOAD.file), createReadStream(folder.at('speech.mp4')));
});
afterAll(async () => {
  await around.close();
  await on.close();
});

function run(
  disk: DiskSpace,
  signal = new AbortController().signal,
  asked: object = { output: { format: 'mp3' } },
): Promise<Made> {
  const job = {
    jobId: `job_${randomBytes(8).toString('hex')}`,
    attemptToken: randomBytes(4).toString('hex'),
    order: 1,
    signal,
    report: () => undefined,
    takeTurn: async () => undefined,
    payload: ExtractPayload.parse({
      version: 1,
      tenant: 'tenant01',
      source: UPLOAD,
      ...asked,
      options: { priority: 'normal' },
      batchId: null,
      retryOf: null,
    }),
  };
  const services = { ...around.services, storage: on.storage, disk };
  return runExtraction(job, services, around.workspaces).then(madeOf);
}

const fetched = (): number => on.server.requests.filter(({ method }) => method === 'GET').length;

it('is done, its result is in the bucket, and nothing of it is left on the disk', async () => {
  const { outputFile } = await run(new DiskSpace(around.folder, 0));
  expect(await on.storage.stat(outputFile.storageKey)).toMatchObject({ sizeBytes: outputFile.size });
  expect(around.left()).toEqual([]);
});

it('of several outputs has all of them in the bucket', async () => {
  const outputs = [
    { name: 'full', format: 'mp3' },
    { name: 'peaks', format: 'waveform' },
  ];
  const result = await run(new DiskSpace(around.folder, 0), undefined, { outputs });
  for (const { storageKey, size } of filesOf(result)) {
    expect(await on.storage.stat(storageKey)).toMatchObject({ sizeBytes: size });
  }
  expect(storageKeysOf(result)).toHaveLength(2);
  expect(around.left()).toEqual([]);
});

it('where there is no room fails before a byte is fetched', async () => {
  const before = fetched();
  const full = new DiskSpace(around.folder, Number.MAX_SAFE_INTEGER);
  await expect(run(full)).rejects.toMatchObject({ message: expect.stringContaining('out of disk space') });
  expect(fetched()).toBe(before);
});

it('that is cancelled while it is fetched ends, and leaves nothing', async () => {
  on.server.fault = ({ method }) => (method === 'GET' ? { kind: 'stall', afterBytes: 1000 } : undefined);
  const before = fetched();
  const cancelled = new AbortController();
  const running = run(new DiskSpace(around.folder, 0), cancelled.signal);
  running.catch(() => undefined);
  await until('it is being fetched', () => fetched() > before);
  cancelled.abort(new Error('cancelled'));
  await expect(running).rejects.toThrow('aborted');
  expect(around.left()).toEqual([]);
  on.server.fault = () => undefined;
});
