/** A job from its source to its file, on real media: what it makes, what it reports, and that nothing of it stays behind. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { availableParallelism, constants, getPriority } from 'node:os';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { realTimeTools, stoppingTools } from 'soundpost-testing/media-tools';
import { isAlive, isStopped, processesOver, programOf } from 'soundpost-testing/processes';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ExtractPayload, ExtractProgress } from '../../src/jobs/payloads.ts';
import { ExtractPayload as Payload } from '../../src/jobs/payloads.ts';
import { Semaphore, type SemaphoreRequest } from '../../src/jobs/semaphore.ts';
import { uploadStorageKey } from '../../src/jobs/uploads/record.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import type { WorkerServices } from '../../src/worker/step.ts';
import { type Made, madeOf } from '../jobs/job-result.ts';
import { makeSurroundings, type Surroundings } from './worker-fixture.ts';

const folder = mediaFolder();
let web: VideoServer;
let around: Surroundings;

beforeAll(async () => {
  web = await serveVideos(folder.path);
  around = await makeSurroundings(web.allow);
  await folder.place('speech.mp4', 'silent-video.mp4');
  await writeFile(folder.at('notes.mp4'), 'This is no video.\n'.repeat(100));
});
afterAll(async () => {
  await around.close();
  await web.close();
});
afterEach(() => {
  // In whatever way a job has ended.
  expect(around.left()).toEqual([]);
});

interface Run {
  readonly jobId: string;
  readonly reports: readonly ExtractProgress[];
  /** Whether it told the queue that it has its turn. */
  readonly hasTurn: () => boolean;
  readonly abort: (reason: Error) => void;
  readonly result: Promise<Made>;
}

function start(
  source: string | ExtractPayload['source'],
  output: object,
  options: object = {},
  queue: { order: number; onTurn?: () => void } & Partial<
    Pick<WorkerServices, 'charge' | 'encoding' | 'tools'>
  > = {
    order: 1,
  },
): Run {
  const { order, onTurn, ...instead } = queue;
  const reports: ExtractProgress[] = [];
  let hasTurn = false;
  const controller = new AbortController();
  const jobId = `job_${randomBytes(8).toString('hex')}`;
  const result = runExtraction(
    {
      jobId,
      attemptToken: 'thisattempt',
      order,
      signal: controller.signal,
      report: (state) => reports.push(state),
      async takeTurn() {
        hasTurn = true;
        onTurn?.();
      },
      payload: Payload.parse({
        version: 1,
        tenant: 'tenant01',
        source: typeof source === 'string' ? { type: 'url', url: web.url(source) } : source,
        output,
        options: { priority: 'normal', ...options },
        batchId: null,
        retryOf: null,
      }),
    },
    { ...around.services, ...instead },
    around.workspaces,
  ).then(madeOf);
  result.catch(() => undefined);
  return { jobId, reports, hasTurn: () => hasTurn, abort: (reason) => controller.abort(reason), result };
}

async function sha256Of(storageKey: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of await around.storage.read(storageKey)) hash.update(chunk);
  return hash.digest('hex');
}

/** Steps in the order in which they came, each once. */
const stepsOf = (reports: readonly ExtractProgress[]) => [
  ...new Set(reports.map(({ currentStep }) => currentStep)),
];

describe('a job', () => {
  it('stores what it made under a name of its own and says what that is', async () => {
    const { jobId, result } = start('speech.mp4', { format: 'mp3' });
    const { inputFile, outputFile, voice } = await result;
    expect(inputFile).toMatchObject({
      name: 'speech.mp4',
      format: 'mp4',
      tracks: [{ index: 0, codec: 'aac', channels: 2 }],
    });
    expect(outputFile).toMatchObject({
      storageKey: `files/${jobId}/thisattempt.mp3`,
      filename: 'speech.mp3',
      format: 'mp3',
      codec: 'mp3',
      copied: false,
    });
    expect(await around.storage.stat(outputFile.storageKey)).toMatchObject({ sizeBytes: outputFile.size });
    expect(await sha256Of(outputFile.storageKey)).toBe(outputFile.sha256);
    const hours = (Date.parse(outputFile.expiresAt) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(0.99);
    expect(hours).toBeLessThanOrEqual(1);
    expect(voice).toBeNull();
  });

  it('is called as its caller wants, and charged to its key with what its tools used', async () => {
    const charged: [string, number][] = [];
    const charge = async (...one: [string, number]) => charged.push(one) < 0;
    const { result } = start(
      'speech.mp4',
      { format: 'voice' },
      { filename: 'Interview Nr. 1' },
      { order: 1, charge },
    );
    expect((await result).outputFile.filename).toBe('Interview Nr. 1.ogg');
    // Whether it may be charged is asked first.
    expect(charged[0]).toEqual(['tenant01', 0]);
    const seconds = charged.slice(1).map(([tenant, used]) => tenant === 'tenant01' && used);
    expect(seconds.length).toBeGreaterThan(0);
    expect(seconds.every((used) => Number(used) > 0)).toBe(true);
  });

  it('of a key over its budget runs its tools at nice 19', async () => {
    const [tool, id] = [folder.at('ffmpeg'), folder.at('ffmpeg-id')];
    await writeFile(tool, `#!/bin/sh\necho $$ > ${id}\nexec sleep 600`, { mode: 0o755 });
    const tools = { ...around.services.tools, ffmpegPath: tool };
    const charge = async () => true;
    const { abort, result } = start('speech.mp4', { format: 'mp3' }, {}, { order: 1, tools, charge });
    await until('it is lowered', async () => {
      const pid = Number(await readFile(id, 'latin1').catch(() => ''));
      return pid > 0 && getPriority(pid) === constants.priority.PRIORITY_LOW;
    });
    abort(new Error('enough'));
    await expect(result).rejects.toThrow('enough');
  });

  it('of a file that was cut off has a warning where its caller takes it', async () => {
    await folder.place('silence.wav');
    await copyFile(folder.at('silence.wav'), folder.at('cut.wav'));
    await truncate(folder.at('cut.wav'), 200_000);
    const { result } = start('cut.wav', { format: 'mp3', acceptTruncated: true });
    expect((await result).warnings).toEqual([
      { code: 'TRUNCATED', message: expect.stringContaining('bytes are missing') },
      { code: 'SILENT', message: expect.stringContaining('below −60 dBFS'), output: 'audio' },
    ]);
  });

  it.each(['auto', 'never'])(
    'of a silent track has a warning that names one with sound, copy %s',
    async (copy) => {
      const silence = ['-f', 'lavfi', '-t', '12', '-i', 'anullsrc=r=44100:cl=stereo'];
      const noise = ['-f', 'lavfi', '-t', '12', '-i', 'anoisesrc=a=0.1:r=44100'];
      const path = await cachedMedia('silent-first.mkv', [
        ...[...silence, ...noise, '-map', '0:a', '-map', '1:a', '-c:a', 'aac'],
      ]);
      await copyFile(path, folder.at('silent-first.mkv'));
      const { outputFile, warnings } = await start('silent-first.mkv', { format: 'm4a', copy }).result;
      expect(outputFile.copied).toBe(copy === 'auto');
      expect(warnings).toEqual([
        { code: 'SILENT', message: expect.stringContaining('Track 1 has sound'), output: 'audio' },
      ]);
    },
  );

  it('makes a voice rendition beside it when a message was asked for', async () => {
    const { jobId, result } = start(
      'speech.mp4',
      { format: 'flac' },
      { voiceMessage: { instance: 'main', number: '1' } },
    );
    const { voice } = await result;
    expect(voice).toMatchObject({
      storageKey: `files/${jobId}/thisattempt.voice.ogg`,
      fitsVoiceBubble: true,
    });
    expect(await around.storage.stat(voice?.storageKey ?? 'none')).toBeDefined();
  });

  it('of an upload leaves the upload where it is', async () => {
    const key = uploadStorageKey('upl_0123456789abcdef');
    const source = { type: 'upload', file: 'upl_0123456789abcdef', name: 'my talk.mp4' } as const;
    await around.storage.write(key, createReadStream(folder.at('speech.mp4')));
    for (let round = 0; round < 2; round += 1) {
      expect((await start(source, { format: 'opus' }).result).outputFile.filename).toBe('my talk.opus');
    }
    expect(await around.storage.stat(key)).toBeDefined();
  });
});

describe('progress', () => {
  it.each([
    [{ format: 'mp3' }, ['downloading_video', 'analyzing_video', 'extracting_audio', 'finalizing']],
    [
      { format: 'mp3', normalize: true },
      ['downloading_video', 'analyzing_video', 'extracting_audio', 'normalizing_audio', 'finalizing'],
    ],
  ])('of %o goes through its steps in order and only up, to 99 at most', async (output, steps) => {
    const { reports, result } = start('speech.mp4', output);
    await result;
    expect(stepsOf(reports)).toEqual(steps);
    const order = reports.map(({ currentStep }) => steps.indexOf(currentStep));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    const percents = reports.map(({ progress }) => progress);
    expect(percents).toEqual(percents.toSorted((a, b) => a - b));
    expect(percents[0]).toBe(0);
    expect(percents.at(-1)).toBeGreaterThan(90);
    expect(percents.at(-1)).toBeLessThanOrEqual(99);
    // What the input is is shown as soon as that is known.
    expect(reports[0]?.inputFile).toBeNull();
    const extracting = reports.find(({ currentStep }) => currentStep === 'extracting_audio');
    expect(extracting?.inputFile?.name).toBe('speech.mp4');
  });
});

describe('while the core is busy', () => {
  /** Who has asked waits: there is one place, and the test has it. */
  class CountingSemaphore extends Semaphore {
    asked = 0;

    override acquire(wish: SemaphoreRequest): Promise<() => void> {
      this.asked += 1;
      return super.acquire(wish);
    }
  }

  async function busyCore() {
    const encoding = new CountingSemaphore(1);
    const free = await encoding.acquire({ signal: new AbortController().signal });
    const turns: number[] = [];
    const submit = (order: number) =>
      start('speech.mp4', { format: 'mp3' }, {}, { order, encoding, onTurn: () => turns.push(order) });
    const areWaiting = (jobs: number) =>
      until('they wait for the core with what they have', () => encoding.asked === 1 + jobs);
    return { free, submit, areWaiting, turns };
  }

  it('a job downloads, waits with what it has, and goes on when the core is free', async () => {
    const { free, submit, areWaiting } = await busyCore();
    const run = submit(1);
    await areWaiting(1);
    expect(stepsOf(run.reports)).toEqual(['downloading_video']);
    expect(run.hasTurn()).toBe(false);
    free();
    await run.result;
    expect(run.hasTurn()).toBe(true);
    await submit(1).result;
  });

  it('jobs that are downloaded are encoded in the order of the queue', async () => {
    const { free, submit, areWaiting, turns } = await busyCore();
    const runs = [9, 5, 7].map(submit);
    await areWaiting(3);
    free();
    await Promise.all(runs.map(({ result }) => result));
    expect(turns).toEqual([5, 7, 9]);
  });

  it('a job that is given up leaves its place to the next', async () => {
    const { free, submit, areWaiting } = await busyCore();
    const [given, next] = [submit(1), submit(2)];
    await areWaiting(2);
    given.abort(new Error('cancelled'));
    await expect(given.result).rejects.toThrow('cancelled');
    free();
    await next.result;
  });
});

describe('a job fails', () => {
  it.each([
    [
      'for a source that is not there',
      'missing.mp4',
      { format: 'mp3' },
      'DOWNLOAD_FAILED',
      'downloading_video',
    ],
    ['for a text that is called a video', 'notes.mp4', { format: 'mp3' }, 'INVALID_VIDEO', 'analyzing_video'],
    [
      'for a video without sound',
      'silent-video.mp4',
      { format: 'mp3' },
      'EXTRACTION_FAILED',
      'analyzing_video',
    ],
    [
      'for a track that is not there',
      'speech.mp4',
      { format: 'mp3', track: 7 },
      'EXTRACTION_FAILED',
      'analyzing_video',
    ],
  ])('%s', async (_what, name, output, code, step) => {
    const { jobId, reports, result } = start(name, output);
    await expect(result).rejects.toMatchObject({ name: 'ServiceError', code });
    expect(reports.at(-1)?.currentStep).toBe(step);
    expect(await around.storage.stat(`files/${jobId}/thisattempt.mp3`)).toBeUndefined();
  });

  it('for an address that nobody opened, and says no more than that', async () => {
    const { result } = start({ type: 'url', url: 'http://127.0.0.1:1/talk.mp4' }, { format: 'mp3' });
    const error = await result.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'DOWNLOAD_FAILED' });
    expect(JSON.stringify(error)).not.toContain('127.0.0.1');
  });

  it('for an upload that has expired', async () => {
    const { result } = start(
      { type: 'upload', file: 'upl_ffffffffffffffff', name: 'a.mp4' },
      { format: 'mp3' },
    );
    await expect(result).rejects.toMatchObject({
      code: 'DOWNLOAD_FAILED',
      message: 'the upload has expired',
    });
  });
});

describe('a long output', () => {
  const SECONDS = 301;
  const long = { format: 'mp3', bitrate: '64k', sampleRate: 24_000 };

  beforeAll(async () => {
    const silence = ['-f', 'lavfi', '-i', `anullsrc=r=8000:cl=mono:d=${SECONDS}`];
    await copyFile(await cachedMedia('long.wav', silence), folder.at('long.wav'));
  });

  /**
   * Runs the job, its encoders all at the same time.
   * @param encoders how many there are
   * @returns the places that nobody held meanwhile
   */
  async function freeBeside(encoders: number, encoding: Semaphore): Promise<number> {
    let runs = 0;
    const watch = (tool: string) => {
      if (tool === 'ffmpeg') runs += 1;
      return () => undefined;
    };
    const tools = { ...stoppingTools, watch };
    const { result } = start('long.wav', long, {}, { order: 1, encoding, tools });
    const stopped = await until(`${encoders} run`, () => {
      const found = processesOver(around.folder).filter(({ pid }) => isStopped(pid));
      return found.length === encoders && found;
    });
    const { weight, release } = encoding.takeFree(encoding.capacity);
    release();
    for (const { pid } of stopped) process.kill(pid, 'SIGCONT');
    expect((await result).outputFile.duration).toBe(SECONDS);
    expect(runs).toBe(encoders);
    return weight;
  }

  it('is encoded over places that nobody waits for, and gives them back', async () => {
    const encoding = new Semaphore(2);
    expect(await freeBeside(2, encoding)).toBe(0);
    expect(encoding.takeFree(2).weight).toBe(2);
  });

  it('is encoded in one while others have the places', async () => {
    const encoding = new Semaphore(2);
    const leave = await encoding.acquire({ signal: new AbortController().signal });
    expect(await freeBeside(1, encoding)).toBe(0);
    leave();
  });

  it('is encoded in one where there are more places than cores', async () => {
    const cores = availableParallelism();
    const encoding = new Semaphore(cores + 1);
    const others = encoding.takeFree(cores - 1);
    expect(await freeBeside(1, encoding)).toBe(1);
    others.release();
  });
});

describe('a job that is given up', () => {
  const reason = new Error('the job was given up');

  it('in its download ends with the reason', async () => {
    web.hold();
    const before = web.requests.length;
    const { abort, result } = start('speech.mp4', { format: 'mp3' });
    await until('the download has begun', () => web.requests.length > before);
    expect(around.left()).toHaveLength(1);
    abort(reason);
    await expect(result).rejects.toBe(reason);
    web.letGo();
  });

  it('while ffmpeg runs ends ffmpeg too', async () => {
    const tools = realTimeTools;
    const { jobId, abort, result } = start('speech.mp4', { format: 'flac' }, {}, { order: 1, tools });
    const running = await until('ffmpeg runs', () => {
      const found = processesOver(around.folder).filter(({ pid }) => programOf(pid) === 'ffmpeg');
      return found.length > 0 && found.map(({ pid }) => pid);
    });
    abort(reason);
    await expect(result).rejects.toBe(reason);
    await until('ffmpeg is gone', () => !running.some(isAlive));
    expect(await around.storage.stat(`files/${jobId}/thisattempt.flac`)).toBeUndefined();
  });

  it('at once ends with the reason', async () => {
    const { abort, result } = start('speech.mp4', { format: 'mp3' });
    abort(reason);
    await expect(result).rejects.toBe(reason);
  });
});
