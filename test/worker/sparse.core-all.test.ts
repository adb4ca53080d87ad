/** Of a video at an address only the audio is fetched, and what comes of it is what comes of the whole file, byte for byte. */
// @module-tag quick-ffmpeg
import { createCipheriv, randomBytes } from 'node:crypto';
import {
  copyFile,
  type FileHandle,
  open,
  readdir,
  readFile,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { ServiceError } from 'soundpost-contract/errors';
import { byRun, currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { cachedFolder } from 'soundpost-testing/media-cache';
import { ffmpeg } from 'soundpost-testing/oracle';
import { type RangeServer, serveRanges } from 'soundpost-testing/range-server';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ExtractPayload, type ExtractResult, filesOf } from '../../src/jobs/payloads.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import { makeSurroundings, type Surroundings } from './worker-fixture.ts';

const folder = mediaFolder();
const SECONDS = 16;
const CLIP_SECONDS = 2;
const MIB = 1024 * 1024;

/** The same in each run: what a decoder makes of noise depends on the noise, now too few samples and now a sound that changes its rate. */
function noise(bytes: number): Buffer {
  return createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(bytes));
}
/**
 * What makes parts worth asking for, however long round trips are on a busy machine: one that takes a second or more counts as a second, of which four
 * are reckoned with, and the whole file would take twelve.
 */
const SLOW = { bytesPerSecond: 1.5 * MIB };
/** For what is fetched whole in the end. */
const BRISK = { bytesPerSecond: 8 * MIB };

let whole: RangeServer;
let several: RangeServer;
let single: RangeServer;
let brisk: RangeServer;
let around: Surroundings;

const SOUND = [
  ...['-f', 'lavfi', '-t', String(SECONDS), '-i'],
  "aevalsrc='0.2*sin(880*PI*t)+0.05*(random(0)*2-1)|0.2*sin(660*PI*t)+0.05*(random(1)*2-1)':s=48000",
];
const CHAPTERS = [0, 5, 9].map(
  (start, nth) => `[CHAPTER]\nTIMEBASE=1/1\nSTART=${start}\nEND=${start + 4}\ntitle=Part ${nth}\n`,
);

/** Pictures of noise, which no codec makes small. */
const NOISE = ['-f', 'rawvideo', '-pix_fmt', 'gray', '-s', '320x180', '-r', '25', '-i'];
const H264 = '-c:v libx264 -preset ultrafast -pix_fmt yuv420p -bf 2 -b:v 6M -g 50'.split(' ');
const VP8 = '-c:v libvpx -deadline realtime -cpu-used 8 -pix_fmt yuv420p -b:v 8M'.split(' ');

/** Where the files are made. */
let place = '';
const at = (name: string): string => join(place, name);

/** A clip over and over: the pictures are nearly all of each file, as they are in real ones. */
async function repeat(clip: string, name: string, codec: readonly string[]): Promise<void> {
  await ffmpeg('-v', 'error', ...NOISE, at('noise.gray'), ...codec, at(clip));
  const times = String(SECONDS / CLIP_SECONDS - 1);
  await ffmpeg('-v', 'error', '-stream_loop', times, '-i', at(clip), '-c', 'copy', at(name));
}

async function makePictures(): Promise<void> {
  await writeFile(at('noise.gray'), noise(320 * 180 * 25 * CLIP_SECONDS));
  await repeat('clip.mp4', 'pictures.mp4', H264);
  if (currentRun === 'all') await repeat('clip.webm', 'pictures.webm', VP8);
  await ffmpeg('-v', 'error', ...SOUND, at('sound.wav'));
  const aac = ['-c:a', 'aac', '-b:a', '128k', at('sound.m4a')];
  await ffmpeg('-v', 'error', '-i', at('sound.wav'), ...aac);
  const cover = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:d=1', '-frames:v', '1'];
  await ffmpeg('-v', 'error', ...cover, at('cover.jpg'));
  await writeFile(at('chapters.txt'), `;FFMETADATA1\ntitle=A film\nartist=Somebody\n${CHAPTERS.join('')}`);
}

/** A file of the pictures, the sound (input 1, and as AAC input 2) and whatever else. */
async function mux(name: string, ...options: string[]): Promise<void> {
  const inputs = ['pictures.mp4', 'sound.wav', 'sound.m4a'].flatMap((input) => ['-i', at(input)]);
  await ffmpeg('-v', 'error', ...inputs, ...options, '-c:v', 'copy', at(name));
}

function late(name: string): Promise<void> {
  const sound = ['-itsoffset', '1.5', '-i', at('sound.m4a')];
  return mux(name, ...sound, '-map', '0:v', '-map', '3:a', '-c:a', 'copy');
}

const AAC = ['-map', '0:v', '-map', '2:a', '-c:a', 'copy'];
const TITLED = ['-metadata', 'title=A film', '-metadata', 'artist=Somebody'];
const recipes: Readonly<Record<string, () => Promise<void>>> = {
  'end.mp4': () => mux('end.mp4', ...AAC),
  'front.mp4': () => mux('front.mp4', ...AAC, '-movflags', '+faststart'),
  'sidx.mp4': () =>
    mux('sidx.mp4', ...AAC, '-movflags', '+frag_keyframe+empty_moov+default_base_moof+global_sidx'),
  'film.mkv': () =>
    mux(
      ...['film.mkv', '-i', at('chapters.txt'), ...AAC, '-map_metadata', '3', '-map_chapters', '3'],
      ...['-attach', at('cover.jpg'), '-metadata:s:t', 'mimetype=image/jpeg'],
    ),
  'silent.mp4': () => mux('silent.mp4', '-map', '0:v'),
};

/** For the rows that are not the core's. */
const otherRecipes: typeof recipes = {
  'vp8.webm': async () => {
    const inputs = ['-i', at('pictures.webm'), '-i', at('sound.wav')];
    await ffmpeg('-v', 'error', ...inputs, '-c:v', 'copy', '-c:a', 'libopus', at('vp8.webm'));
  },
  'no-index.mp4': () =>
    mux('no-index.mp4', ...AAC, '-movflags', '+frag_keyframe+empty_moov+default_base_moof+skip_trailer'),
  'late.mp4': () => late('late.mp4'),
  'late.mkv': () => late('late.mkv'),
  'cover.mp4': () =>
    mux(
      'cover.mp4',
      ...['-i', at('cover.jpg'), '-i', at('chapters.txt'), ...AAC, '-map', '3:v'],
      ...[
        '-disposition:v:1',
        'attached_pic',
        '-map_metadata',
        '4',
        '-map_chapters',
        '4',
        '-movflags',
        '+faststart',
      ],
    ),
  'tracks.mov': () =>
    mux(
      'tracks.mov',
      ...['-map', '0:v', '-map', '1:a', '-map', '1:a', '-map', '1:a'],
      ...['-c:a:0', 'aac', '-c:a:1', 'pcm_s16le', '-c:a:2', 'libmp3lame', '-filter:a:1', 'volume=0.5'],
      ...[
        '-metadata:s:a:0',
        'language=eng',
        '-metadata:s:a:1',
        'language=ger',
        '-metadata:s:a:2',
        'language=fra',
      ],
      ...['-disposition:a:0', '0', '-disposition:a:1', 'default', '-disposition:a:2', '0'],
    ),
  'adpcm.mov': () => mux('adpcm.mov', '-map', '0:v', '-map', '1:a', '-c:a', 'adpcm_ima_qt'),
  'dash.mp4': () => mux('dash.mp4', ...AAC, ...TITLED, '-movflags', '+frag_keyframe+dash+skip_trailer'),
  'cmaf.mp4': () => mux('cmaf.mp4', ...AAC, '-movflags', '+cmaf', '-frag_duration', '1500000'),
  'tracks.mkv': () =>
    mux(
      ...['tracks.mkv', '-map', '0:v', '-map', '1:a', '-map', '1:a', '-c:a:0', 'flac', '-c:a:1', 'libopus'],
      ...['-filter:a:1', 'volume=0.5', '-metadata:s:a:1', 'language=ger', '-cluster_time_limit', '1500'],
    ),
  'seconds.mp4': () => mux('seconds.mp4', ...AAC, '-chunk_duration', '1000000'),
  'alac.mov': () => mux('alac.mov', '-map', '0:v', '-map', '1:a', '-c:a', 'alac', '-ac', '1'),
  'tables.mp4': () => mux('tables.mp4', ...AAC, '-movflags', '+frag_keyframe+empty_moov'),
  'hybrid.mp4': () => mux('hybrid.mp4', ...AAC, ...TITLED, '-movflags', '+frag_keyframe'),
  'late-moov.mp4': () => mux('late-moov.mp4', ...AAC, '-movflags', '+frag_keyframe+delay_moov'),
  'fragment-tracks.mp4': () =>
    mux(
      ...['fragment-tracks.mp4', '-map', '0:v', '-map', '1:a', '-map', '1:a', '-c:a:0', 'libopus'],
      ...['-c:a:1', 'aac', '-filter:a:1', 'volume=0.5', '-metadata:s:a:1', 'language=ger'],
      ...['-movflags', '+frag_keyframe+empty_moov+default_base_moof'],
    ),
};

beforeAll(async () => {
  whole = await serveRanges(folder.path, { ranges: false });
  several = await serveRanges(folder.path, SLOW);
  single = await serveRanges(folder.path, { bytesPerSecond: 2 * MIB, severalRanges: false });
  brisk = await serveRanges(folder.path, BRISK);
  around = await makeSurroundings([whole, several, single, brisk].map(({ allow }) => allow).join(','));
  const wanted = byRun({ core: recipes, all: { ...recipes, ...otherRecipes } });
  const recipe = ['sparse', Object.keys(wanted), await readFile(import.meta.filename, 'utf8')];
  const made = await cachedFolder(recipe, async (making) => {
    place = making;
    await makePictures();
    for (const make of Object.values(wanted)) await make();
  });
  for (const name of await readdir(made)) await symlink(join(made, name), folder.at(name));
}, 300_000);
afterAll(async () => {
  await around.close();
  await Promise.all([whole, several, single, brisk].map((server) => server.close()));
});
afterEach(() => {
  expect(around.left()).toEqual([]);
});

/** @param output several as a list */
async function extract(
  url: string,
  output: object | readonly object[],
  surroundings = around,
): Promise<ExtractResult> {
  return runExtraction(
    {
      jobId: `job_${randomBytes(8).toString('hex')}`,
      attemptToken: 'attempt',
      order: 0,
      signal: new AbortController().signal,
      report: () => undefined,
      takeTurn: async () => undefined,
      payload: ExtractPayload.parse({
        version: 1,
        tenant: 'tenant01',
        source: { type: 'url', url },
        ...(Array.isArray(output) ? { outputs: output } : { output }),
        options: { priority: 'normal' },
        batchId: null,
        retryOf: null,
      }),
    },
    surroundings.services,
    surroundings.workspaces,
  );
}

/** What does not depend on which job it was. */
function essence(result: ExtractResult): object {
  const files = filesOf(result).map(({ storageKey: _key, expiresAt: _at, ...file }) => file);
  return { inputFile: result.inputFile, files };
}

const wholes = new Map<string, Promise<object>>();

/** What comes of the whole file, found out once. */
function essenceOfWhole(name: string, output: object): Promise<object> {
  const key = `${name} ${JSON.stringify(output)}`;
  const known = wholes.get(key) ?? extract(whole.url(name), output).then(essence);
  wholes.set(key, known);
  return known;
}

describe('the result of a part is that of the whole', () => {
  /** The core's three first: of each kind of index one. */
  const results = [
    ['end.mp4', { format: 'm4a' }],
    ['sidx.mp4', { format: 'flac', start: 3.3, end: 7.1 }],
    ['film.mkv', { format: 'mp3' }],
    ['front.mp4', { format: 'flac', start: 3.3, end: 7.1 }],
    ['no-index.mp4', { format: 'm4a' }],
    ['vp8.webm', { format: 'mp3', start: 9 }],
    ['late.mp4', { format: 'm4a' }],
    ['cover.mp4', { format: 'mp3' }],
    ['tracks.mov', { format: 'm4a', track: 'en' }],
    ['adpcm.mov', { format: 'flac' }],
    ['dash.mp4', { format: 'm4a' }],
    ['cmaf.mp4', { format: 'opus', normalize: true }],
    ['tracks.mkv', { format: 'flac' }],
    ['seconds.mp4', { format: 'aac' }],
    ['alac.mov', { format: 'flac' }],
    ['tables.mp4', { format: 'm4a' }],
    ['hybrid.mp4', { format: 'm4a' }],
    ['late-moov.mp4', { format: 'm4a' }],
    ['fragment-tracks.mp4', { format: 'flac', track: 'de' }],
    ['end.mp4', { format: 'mp3' }],
    ['front.mp4', { format: 'mp3', preserveMetadata: false }],
    ['front.mp4', { format: 'm4a' }],
    ['front.mp4', { format: 'opus', normalize: true }],
    ['late.mp4', { format: 'mp3' }],
    ['late.mkv', { format: 'mp3' }],
    ['cover.mp4', { format: 'm4a' }],
    ['cover.mp4', { format: 'ogg' }],
    ['cover.mp4', { format: 'm4a', preserveMetadata: false }],
    ['cover.mp4', { format: 'mp3', start: 6 }],
    ['tracks.mov', { format: 'mp3', track: 2 }],
    ['tracks.mov', { format: 'wav' }],
    ['tables.mp4', { format: 'mp3' }],
    ['tables.mp4', { format: 'flac', start: 3.3, end: 7.1 }],
    ['sidx.mp4', { format: 'flac' }],
    ['sidx.mp4', { format: 'mp3', start: 9 }],
    ['dash.mp4', { format: 'mp3' }],
    ['cmaf.mp4', { format: 'm4a' }],
    ['hybrid.mp4', { format: 'mp3' }],
    ['no-index.mp4', { format: 'wav' }],
    ['film.mkv', { format: 'm4a' }],
    ['film.mkv', { format: 'flac', start: 3.3, end: 7.1 }],
    ['tracks.mkv', { format: 'mp3', track: 1 }],
    ['tracks.mkv', { format: 'opus', track: 'de' }],
    ['vp8.webm', { format: 'opus' }],
    ['fragment-tracks.mp4', { format: 'm4a', track: 1 }],
    ['fragment-tracks.mp4', { format: 'mp3' }],
    ['tracks.mov', { format: 'probe' }],
    ['film.mkv', { format: 'probe' }],
  ] as const;
  it.each(rowsOfRun(results, 3))('%s as %o', async (name, output) => {
    const { size } = await stat(folder.at(name));
    const expected = await essenceOfWhole(name, output);
    const before = several.sentBytes;
    expect(essence(await extract(several.url(name), output))).toEqual(expected);
    expect(several.sentBytes - before).toBeLessThan(size / 3);
  });

  const singly = ['end.mp4', 'film.mkv', 'sidx.mp4', 'seconds.mp4', 'tables.mp4', 'no-index.mp4'];
  it.each(rowsOfRun(singly, 1))('%s from a server that sends one range at a time', async (name) => {
    const { size } = await stat(folder.at(name));
    const expected = await essenceOfWhole(name, { format: 'm4a' });
    const before = single.sentBytes;
    expect(essence(await extract(single.url(name), { format: 'm4a' }))).toEqual(expected);
    expect(single.sentBytes - before).toBeLessThan(size / 3);
    expect(single.peakConnections).toBeLessThanOrEqual(16);
  });
});

describe('of several outputs', () => {
  const named = (output: object, nth: number): object => ({ name: `n${nth}`, ...output });

  it.runIf(currentRun === 'core')('one track is fetched once', async () => {
    const sentFor = async (output: object): Promise<number> => {
      const before = several.sentBytes;
      await extract(several.url('end.mp4'), output);
      return several.sentBytes - before;
    };
    const once = await sentFor({ format: 'mp3' });
    const outputs = [
      { format: 'mp3' },
      { format: 'opus' },
      { format: 'waveform' },
      { format: 'flac', start: 5 },
    ];
    expect(await sentFor(outputs.map(named))).toBeLessThan(1.1 * once);
  });

  it.runIf(currentRun === 'all').each(['tracks.mov', 'tracks.mkv'])(
    'the tracks of all are fetched, and no others: %s',
    async (name) => {
      const { size } = await stat(folder.at(name));
      const outputs = [
        { format: 'mp3', track: 0 },
        { format: 'flac', track: 1 },
        { format: 'waveform', track: 1 },
      ];
      const expected = await essenceOfWhole(name, outputs.map(named));
      const before = several.sentBytes;
      expect(essence(await extract(several.url(name), outputs.map(named)))).toEqual(expected);
      expect(several.sentBytes - before).toBeLessThan(size / 2);
    },
  );
});

async function failureOf(result: Promise<unknown>): Promise<{ code: string; details: unknown }> {
  const error: unknown = await result.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ServiceError)) throw new Error('no failure of a job', { cause: error });
  return { code: error.code, details: error.details };
}

describe('a job that cannot be done fails as with the whole file', () => {
  async function changed(
    name: string,
    from: string,
    change: (file: FileHandle, size: number) => Promise<unknown>,
  ) {
    await copyFile(folder.at(from), folder.at(name));
    await using file = await open(folder.at(name), 'r+');
    await change(file, (await file.stat()).size);
  }

  beforeAll(async () => {
    if (currentRun === 'core') return;
    await changed('cut.mp4', 'front.mp4', (file, size) => file.truncate(Math.floor(size * 0.7)));
    await changed('cut-index.mp4', 'end.mp4', (file, size) => file.truncate(size - 5000));
    await changed('noise.mp4', 'front.mp4', async (file, size) => {
      for (let at = 300_000; at < size; at += MIB) await file.write(noise(MIB - 1), 0, undefined, at);
    });
    await changed('index.mp4', 'front.mp4', (file) => file.write(Buffer.alloc(3000, 0xa5), 0, undefined, 40));
    await writeFile(folder.at('noise.bin'), noise(9 * MIB));
  });

  /** The core's is the first. */
  const failures = [
    ['silent.mp4', { format: 'mp3' }, 'EXTRACTION_FAILED'],
    ['noise.mp4', { format: 'mp3' }, 'INVALID_VIDEO'],
    ['none.mp4', { format: 'mp3' }, 'DOWNLOAD_FAILED'],
    ['front.mp4', { format: 'mp3', track: 4 }, 'EXTRACTION_FAILED'],
    ['front.mp4', { format: 'mp3', start: 500 }, 'EXTRACTION_FAILED'],
    ['cut.mp4', { format: 'mp3' }, 'INVALID_VIDEO'],
    ['cut-index.mp4', { format: 'mp3' }, 'INVALID_VIDEO'],
    ['index.mp4', { format: 'mp3' }, 'EXTRACTION_FAILED'],
    ['tracks.mov', { format: 'mp3', track: 'sv' }, 'EXTRACTION_FAILED'],
    ['cut.mp4', { format: 'm4a' }, 'INVALID_VIDEO'],
    ['noise.bin', { format: 'mp3' }, 'INVALID_VIDEO'],
  ] as const;
  it.each(rowsOfRun(failures, 1))('%s as %o: %s', async (name, output, code) => {
    const expected = await failureOf(extract(whole.url(name), output));
    expect(expected.code).toBe(code);
    expect(await failureOf(extract(brisk.url(name), output))).toEqual(expected);
  });

  it.runIf(currentRun === 'core')(
    'a source over the limit, although little of it would be fetched',
    async () => {
      const small = {
        ...around,
        services: { ...around.services, limits: { ...around.services.limits, maxInputBytes: 9 * MIB } },
      };
      const before = brisk.sentBytes;
      const failure = await failureOf(extract(brisk.url('front.mp4'), { format: 'mp3' }, small));
      expect(failure).toMatchObject({ code: 'DOWNLOAD_FAILED', details: 'the file is larger than allowed' });
      expect(brisk.sentBytes - before).toBeLessThan(2 * MIB);
    },
  );
});

describe('a file of two hours', () => {
  it.runIf(currentRun === 'all')(
    'is copied with a fraction of its bytes, and comes out as from the whole',
    async () => {
      const minute = folder.at('minute.mp4');
      const pictures = ['-s', '160x90', '-r', '5', '-stream_loop', '1', '-i', folder.at('noise.gray')];
      await ffmpeg(
        ...['-v', 'error', ...NOISE.slice(0, 4), ...pictures],
        ...['-f', 'lavfi', '-i', 'anoisesrc=r=24000:d=60:a=0.1', '-t', '60'],
        ...[
          '-c:v',
          'mpeg4',
          '-b:v',
          '300k',
          '-c:a',
          'aac',
          '-b:a',
          '16k',
          '-chunk_duration',
          '500000',
          minute,
        ],
      );
      await ffmpeg('-v', 'error', '-stream_loop', '119', '-i', minute, '-c', 'copy', folder.at('hours.mp4'));
      const { size } = await stat(folder.at('hours.mp4'));
      const quick = await serveRanges(folder.path, { bytesPerSecond: size / 12 });
      const limits = { ...around.services.limits, maxInputBytes: 2048 * MIB, maxAudioSeconds: 8000 };
      const patient = await makeSurroundings(`${whole.allow},${quick.allow}`);
      const surroundings = { ...patient, services: { ...patient.services, limits } };
      try {
        const expected = await extract(whole.url('hours.mp4'), { format: 'm4a' }, surroundings);
        expect(expected.outputFile).toMatchObject({ copied: true });
        expect(expected.outputFile?.duration).toBeCloseTo(7200, -2);
        expect(essence(await extract(quick.url('hours.mp4'), { format: 'm4a' }, surroundings))).toEqual(
          essence(expected),
        );
        expect(quick.sentBytes).toBeLessThan(size / 10);
      } finally {
        await patient.close();
        await quick.close();
      }
    },
    120_000,
  );
});

/** A copy whose segment index says that its second fragment begins in the middle of the first one's data. */
async function leadAstray(from: string, to: string): Promise<void> {
  const bytes = await readFile(folder.at(from));
  const firstLength = bytes.indexOf('sidx') + 36;
  const secondLength = firstLength + 12;
  bytes.writeUInt32BE(bytes.readUInt32BE(firstLength) - 5000, firstLength);
  bytes.writeUInt32BE(bytes.readUInt32BE(secondLength) + 5000, secondLength);
  await writeFile(folder.at(to), bytes);
}

describe('the whole is fetched, and the result is the same', () => {
  const servers = [
    ['a fragmented file whose index leads astray', 'astray.mp4', undefined],
    [
      'a server whose file changes',
      'front.mp4',
      (request: IncomingMessage, response: ServerResponse) => {
        if (request.headers['if-range'] === undefined) return false;
        response.writeHead(206, { etag: '"other"', 'content-range': 'bytes 0-0/1' }).end('a');
        return true;
      },
    ],
    [
      'a server that breaks off each part',
      'end.mp4',
      (request: IncomingMessage, response: ServerResponse) => {
        if (request.headers['if-range'] === undefined) return false;
        response.writeHead(500).end();
        return true;
      },
    ],
  ] as const;
  it.each(rowsOfRun(servers, 1))('%s', async (_what, name, intercept) => {
    await leadAstray('sidx.mp4', 'astray.mp4');
    const { size } = await stat(folder.at(name));
    const server = await serveRanges(folder.path, {
      ...BRISK,
      ...(intercept === undefined ? {} : { intercept }),
    });
    const other = await makeSurroundings(server.allow);
    try {
      const expected = await essenceOfWhole(name, { format: 'm4a' });
      expect(essence(await extract(server.url(name), { format: 'm4a' }, other))).toEqual(expected);
      expect(server.sentBytes).toBeGreaterThanOrEqual(size);
    } finally {
      await other.close();
      await server.close();
    }
  });
});
