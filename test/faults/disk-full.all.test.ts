// @module-tag mount
/**
 * The disk is full: in the middle of a download, of an encoding, of the way into the storage; or before a job has begun. The
 * first three jobs end failed and say why, the worker lives, nothing of them stays; the last waits.
 *
 * Broken by hand, each in a copy of the project, and what was reported then:
 * - `isDiskFull` always false (packages/kit/src/storage/disk-space.ts): all three failed jobs say "the job could not be finished", no word of the disk.
 * - ffmpeg's "No space left on device" not told from other endings (packages/media/src/failure.ts): "encoding" ends EXTRACTION_FAILED.
 * - the workspace not removed after a failure (packages/kit/src/storage/workspaces.ts): it is found after each.
 * - an ENOSPC of the download thrown outside of any promise: the worker dies of it, and the job ends as one that kills its workers.
 * - `pause` of src/jobs/extraction-consumer.ts doing nothing: the jobs that should wait are begun.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { MIB, makeSmallVolume, type SmallVolume } from 'soundpost-testing/small-volume';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { report } from './runs.ts';
import { LONG_LOCKS, Stand, type Submission } from './stand.ts';

const OUT_OF_SPACE = {
  status: 'failed',
  error: {
    code: 'INTERNAL_ERROR',
    message: 'the job failed because the service ran out of disk space',
  },
};

const volumes: SmallVolume[] = [];

async function smallVolume(sizeBytes: number, folder: string): Promise<SmallVolume> {
  const volume = await makeSmallVolume(sizeBytes, folder);
  volumes.unshift(volume);
  return volume;
}

/** The volumes first: a folder that something is mounted on cannot be removed. */
async function close(stand: Stand): Promise<void> {
  for (const volume of volumes.splice(0)) await volume.remove();
  await stand.close();
}

describe('a disk that turns out to be full', () => {
  let stand: Stand;
  let files: SmallVolume;
  beforeAll(async () => {
    stand = await Stand.start({
      // Nothing is asked of the disk beforehand: it is met where it is full.
      environment: { ...LONG_LOCKS, DISK_RESERVE_BYTES: '0' },
      async prepare(data) {
        files = await smallVolume(16 * MIB, data);
        await mkdir(join(data, 'workspaces'));
        await smallVolume(24 * MIB, join(data, 'workspaces'));
      },
    });
    await writeFile(join(stand.folder, 'videos', 'large.mp4'), randomBytes(40 * MIB));
    await stand.warmUp();
  });
  afterAll(() => close(stand));

  /** What a job has left on the disk, without waiting for a janitor; names of unfinished files do not tell whose they are. */
  async function leftOf(jobId: string): Promise<string[]> {
    const names = await readdir(stand.data, { recursive: true });
    return names.filter((name) => name.includes(jobId) || name.startsWith('.unfinished/'));
  }

  const cases: [string, () => Submission, (() => Promise<void>)?][] = [
    ['downloading', () => ({ source: stand.web.url('large.mp4') })],
    // 9.6 MB as it comes, 58 MB as it is asked for.
    ['encoding', () => ({ source: 'long.wav', output: { format: 'wav', sampleRate: 48_000 } })],
    ['publishing', () => ({ output: { format: 'flac' }, voice: true }), () => files.fillUpTo(0)],
  ];

  it.each(cases)('in the middle of %s fails the job, and nothing else', async (where, submission, fill) => {
    const [worker] = stand.workers;
    const { pid } = worker ?? {};
    await fill?.();
    const begunAtMs = Date.now();
    const requested = stand.web.requests.length;
    const failed = await stand.submit({ webhook: true, ...submission() });
    expect(await stand.observer.ended(failed)).toMatchObject(OUT_OF_SPACE);
    const seconds = (Date.now() - begunAtMs) / 1000;
    const tries = stand.web.requests.length - requested;
    expect(tries).toBe(3);
    expect(await leftOf(failed)).toEqual([]);
    await files.empty();
    const next = await stand.submit({ webhook: true });
    expect(await stand.observer.ended(next)).toMatchObject({ status: 'completed' });
    expect({ pid: worker?.pid, starts: worker?.starts }).toEqual({ pid, starts: 1 });
    report('Disk full', { where, code: 'INTERNAL_ERROR', tries, seconds, nextJob: 'completed' });
  });

  it('leaves nothing behind', async () => {
    expect(await violations(stand)).toEqual([]);
  });
});

describe('a disk that is nearly full before a job begins', () => {
  let stand: Stand;
  let volume: SmallVolume;
  beforeAll(async () => {
    stand = await Stand.start({
      environment: { ...LONG_LOCKS, DISK_RESERVE_BYTES: String(8 * MIB) },
      async prepare(data) {
        volume = await smallVolume(32 * MIB, data);
      },
    });
  });
  afterAll(() => close(stand));

  it('lets it wait, and says so, until there is room', async () => {
    const [worker] = stand.workers;
    const health = /health at (\S+)/.exec(worker?.output ?? '')?.[1] ?? '';
    const ready = async () => {
      const answer = await fetch(health);
      const body: Json = await answer.json();
      return { status: answer.status, body };
    };
    expect(await ready()).toMatchObject({ status: 200, body: { disk: 'ok' } });
    await volume.fillUpTo(4 * MIB);
    await until('the worker has seen it', async () => (await ready()).body.disk === 'low');
    expect(await ready()).toMatchObject({ status: 200 });
    expect((await fetch(health.replace('ready', 'live'))).status).toBe(200);

    const jobs = await Promise.all([stand.submit(), stand.submit({ webhook: true }), stand.submit()]);
    // By then it would have begun them, and failed with the first of their three tries.
    const submittedAtMs = Date.now();
    await until('it had time to begin them', () => Date.now() - submittedAtMs > 3000);
    expect(stand.web.requests).toEqual([]);
    expect(jobs.filter((jobId) => stand.observer.of(jobId).ends.size > 0)).toEqual([]);
    expect(worker?.output.match(/nearly full/g)).toHaveLength(1);

    await volume.empty();
    for (const jobId of jobs) {
      expect(await stand.observer.ended(jobId)).toMatchObject({ status: 'completed' });
    }
    expect(await ready()).toMatchObject({ body: { disk: 'ok' } });
    expect(worker?.starts).toBe(1);
    expect(await violations(stand)).toEqual([]);
  });
});
