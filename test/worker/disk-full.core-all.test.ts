// @module-tag mount
/** A job on a volume that becomes full, at whichever byte: it fails with one clear error, or it is done; nothing in between. */
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FormatName, formats } from 'soundpost-contract/formats';
import { DiskSpace } from 'soundpost-kit/storage/disk-space';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { MIB, makeSmallVolume, type SmallVolume } from 'soundpost-testing/small-volume';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ExtractPayload } from '../../src/jobs/payloads.ts';
import { Semaphore } from '../../src/jobs/semaphore.ts';
import { uploadStorageKey } from '../../src/jobs/uploads/record.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import { type Made, madeOf } from '../jobs/job-result.ts';
import { makeSurroundings, type Surroundings } from './worker-fixture.ts';

const KIB = 1024;
const UPLOAD = { type: 'upload', file: 'upl_0123456789abcdef', name: 'talk.mp4' } as const;
const OUT_OF_SPACE = {
  code: 'INTERNAL_ERROR',
  message: 'the job failed because the service ran out of disk space',
  details: undefined,
};

const folder = mediaFolder();
let web: VideoServer;
let around: Surroundings;
/** Of the workspaces; results and uploads lie elsewhere. */
let volume: SmallVolume;
let workspaces: Workspaces;

beforeAll(async () => {
  web = await serveVideos(folder.path);
  around = await makeSurroundings(web.allow);
  volume = await makeSmallVolume(10 * MIB);
  workspaces = await Workspaces.open(volume.folder);
  await folder.place('speech.mp4');
  await around.storage.write(uploadStorageKey(UPLOAD.file), createReadStream(folder.at('speech.mp4')));
});
afterAll(async () => {
  await volume.remove();
  await around.close();
  await web.close();
});
afterEach(async () => {
  await volume.empty();
  expect(await leftIn(volume.folder)).toEqual([]);
});

async function leftIn(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

/** @param disk by default nothing is asked of it beforehand, so that the disk is met where it is full */
function run(
  source: ExtractPayload['source'],
  output: object,
  {
    disk = new DiskSpace(volume.folder, 0),
    storage = around.storage,
    encoding = around.services.encoding,
    options = {},
  } = {},
): Promise<Made> {
  return runExtraction(
    {
      jobId: `job_${randomBytes(8).toString('hex')}`,
      attemptToken: randomBytes(4).toString('hex'),
      order: 1,
      signal: new AbortController().signal,
      report: () => undefined,
      takeTurn: async () => undefined,
      payload: ExtractPayload.parse({
        version: 1,
        tenant: 'tenant01',
        source,
        output,
        options: { priority: 'normal', ...options },
        batchId: null,
        retryOf: null,
      }),
    },
    { ...around.services, disk, storage, encoding },
    workspaces,
  ).then(madeOf);
}

/** A video of so many MiB, served under the name: most of it is a box that holds nothing (ISO/IEC 14496-12 section 8.1.2). */
async function padded(name: string, mib: number): Promise<ExtractPayload['source']> {
  const talk = await readFile(folder.at('speech.mp4'));
  const free = Buffer.alloc(mib * MIB - talk.length);
  free.writeUInt32BE(free.length);
  free.write('free', 4);
  await writeFile(folder.at(name), Buffer.concat([talk, free]));
  return { type: 'url', url: web.url(name) };
}

describe('a disk that is full', () => {
  it.each(rowsOfRun(Object.keys(formats) as FormatName[], 1))(
    'at any byte of %s ends the job with one error',
    async (format) => {
      const output = { format, copy: 'never' };
      const { outputFile } = await run(UPLOAD, output);
      // Nothing at all, a part, and all but the last page: what a small file lacks then is flushed when it is closed.
      const rooms = [0, outputFile.size / 2, Math.floor((outputFile.size - 1) / (4 * KIB)) * 4 * KIB];
      for (const room of rooms) {
        await volume.fillUpTo(room);
        await expect(run(UPLOAD, output), `${room} of ${outputFile.size} bytes`).rejects.toMatchObject(
          OUT_OF_SPACE,
        );
      }
      await volume.fillUpTo(outputFile.size + 128 * KIB);
      expect((await run(UPLOAD, output)).outputFile.sha256).toBe(outputFile.sha256);
    },
  );

  it.runIf(currentRun === 'all')(
    'in the second of two renditions, and while the loudness is found, ends it likewise',
    async () => {
      const output = { format: 'mp3', normalize: true };
      const options = { voiceMessage: { instance: 'main', number: '1' } };
      const { outputFile } = await run(UPLOAD, output, { options });
      for (const room of [outputFile.size / 2, outputFile.size + 8 * KIB]) {
        await volume.fillUpTo(room);
        await expect(run(UPLOAD, output, { options })).rejects.toMatchObject(OUT_OF_SPACE);
      }
    },
  );

  it.runIf(currentRun === 'core')('ends a download likewise', async () => {
    await expect(run(await padded('too-large.mp4', 11), { format: 'mp3' })).rejects.toMatchObject(
      OUT_OF_SPACE,
    );
  });

  it.runIf(currentRun === 'core')(
    'where results are kept ends it likewise, and leaves nothing there',
    async () => {
      const files = await makeSmallVolume(MIB);
      try {
        const storage = createFileStorage({ root: files.folder });
        await mkdir(join(files.folder, 'uploads'));
        await writeFile(join(files.folder, uploadStorageKey(UPLOAD.file)), Buffer.alloc(0));
        await files.fillUpTo(8 * KIB);
        const source = { type: 'url', url: web.url('speech.mp4') } as const;
        await expect(run(source, { format: 'flac' }, { storage })).rejects.toMatchObject(OUT_OF_SPACE);
        expect(await leftIn(join(files.folder, '.unfinished'))).toEqual([]);
        await files.empty();
        await expect(run(source, { format: 'flac' }, { storage })).resolves.toBeDefined();
      } finally {
        await files.remove();
      }
    },
  );
});

describe.runIf(currentRun === 'core')('jobs that share a disk', () => {
  /** Two videos of which one fits at a time, downloaded at the same time. */
  async function both(
    disk: DiskSpace,
    atOnce: number,
    encoding?: Semaphore,
  ): Promise<readonly Promise<Made>[]> {
    const source = await padded('half-full.mp4', 6);
    const before = web.requests.length;
    web.hold();
    const runs = [0, 1].map(() => run(source, { format: 'mp3' }, { disk, encoding }));
    for (const started of runs) started.catch(() => undefined);
    await until('they are being downloaded', () => web.requests.length >= before + atOnce);
    web.letGo();
    return runs;
  }

  it('wait for one another', async () => {
    const ends = await Promise.allSettled(await both(new DiskSpace(volume.folder, MIB), 1));
    const reasons = ends.map((end) => (end.status === 'rejected' ? String(end.reason) : end.status));
    expect(reasons).toEqual(['fulfilled', 'fulfilled']);
  });

  it('fail where nobody keeps count', async () => {
    const encoding = new Semaphore(1);
    // Whichever has all of its video keeps it until the other one has found no room.
    const leave = await encoding.acquire({ signal: new AbortController().signal });
    const runs = await both(new DiskSpace(volume.folder, 0), 2, encoding);
    await expect(Promise.race(runs)).rejects.toMatchObject(OUT_OF_SPACE);
    leave();
    await Promise.allSettled(runs);
  });

  it('and one that never fits is refused before it has written anything', async () => {
    const disk = new DiskSpace(volume.folder, MIB);
    await expect(run(await padded('never.mp4', 12), { format: 'mp3' }, { disk })).rejects.toMatchObject(
      OUT_OF_SPACE,
    );
    await volume.fillUpTo(3 * MIB);
    const wav = { format: 'wav', sampleRate: 192_000, channels: 2, quality: 'extreme' };
    await expect(run(UPLOAD, wav, { disk })).rejects.toMatchObject(OUT_OF_SPACE);
  });
});
