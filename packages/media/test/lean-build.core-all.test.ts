/** What script/ffmpeg has built: it holds what the service uses and nothing else, and reads every source as the system's ffmpeg does. */
import { readFile, writeFile } from 'node:fs/promises';
import { baseFiles } from 'soundpost-testing/base-files';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { noAbort } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { systemTools } from 'soundpost-testing/media-tools';
import { BUILT_FOLDER } from 'soundpost-testing/needs';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { findTools } from '../src/abilities.ts';
import { composeArguments } from '../src/command.ts';
import { MediaFailure, ToolFailure } from '../src/failure.ts';
import { type Probe, probe } from '../src/probe.ts';
import { requirements } from '../src/requirements.ts';
import { type MediaTools, runFfmpeg } from '../src/run.ts';

const found = findTools(undefined, process.env.PATH ?? '', BUILT_FOLDER);
const lean = found.tools !== undefined && found.isOurs ? found.tools : undefined;
const folder = mediaFolder();
const limits = { signal: noAbort, wallLimitMs: 20_000 };

async function output(tools: MediaTools, ...args: string[]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await runFfmpeg(tools, args, { ...limits, onStdout: (chunk) => chunks.push(chunk) });
  return Buffer.concat(chunks);
}

describe.runIf(lean !== undefined && currentRun === 'core')('what is in it', () => {
  const needs = requirements();
  const tools = lean ?? systemTools;

  /** The names in one of ffmpeg's lists; of a component with several, the first. */
  async function listed(list: string, row: RegExp): Promise<string[]> {
    const lines = (await output(tools, `-${list}`)).toString().split('\n');
    return lines.flatMap((line) => row.exec(line)?.[1] ?? []).sort();
  }

  it.each([
    { list: 'protocols', row: /^ {2}(\w+)$/, wanted: [...needs.protocols, ...needs.protocols] },
    { list: 'demuxers', row: /^ D[E ][d ]? {1,2}(\w+)/, wanted: needs.demuxers },
    { list: 'muxers', row: /^ [D ]E[d ]? {1,2}(\w+)/, wanted: needs.muxers },
    {
      list: 'decoders',
      row: /^ [A-Z.]{6} (\w+) /,
      wanted: Object.values(needs.decoders)
        .flat()
        .filter((name) => !name.startsWith('lib')),
    },
    { list: 'encoders', row: /^ [A-Z.]{6} (\w+) /, wanted: needs.encoders },
    // Two are its MP4 muxer's.
    { list: 'bsfs', row: /^(\w+)$/, wanted: [...needs.bitstreamFilters, 'aac_adtstoasc', 'vp9_superframe'] },
    {
      list: 'filters',
      row: /^ [A-Z.|]{2,3} (\w+) +\S+->/,
      wanted: [
        ...needs.filters,
        // The ends of every graph, and what the program puts into one by itself.
        ...['abuffer', 'abuffersink', 'buffer', 'buffersink'],
        ...['anull', 'crop', 'format', 'hflip', 'null', 'rotate', 'transpose', 'trim', 'vflip'],
      ],
    },
    { list: 'devices', row: /^ [D ][E ] (\w+)/, wanted: [] },
    { list: 'hwaccels', row: /^(\w+)$/, wanted: [] },
  ])('are the $list that are asked for, and no others', async ({ list, row, wanted }) => {
    expect(await listed(list, row)).toEqual([...wanted].sort());
  });

  it('are the parsers that are asked for, no network, and no code under the GPL', async () => {
    const flags = (await output(tools, '-buildconf')).toString().replaceAll("'", '').split(/\s+/);
    expect(flags).toContain(`--enable-parser=${needs.parsers.join(',')}`);
    expect(flags).toEqual(expect.arrayContaining(['--disable-everything', '--disable-network']));
    expect(flags.filter((flag) => /gpl|nonfree|version3/.test(flag))).toEqual([]);
  });

  it('is none of the libraries for pictures and devices', async () => {
    const libraries = await listed('version', /^lib(\w+) +\d/);
    expect(libraries).toEqual(['avcodec', 'avfilter', 'avformat', 'avutil', 'swresample']);
  });

  it('is no decoder of pictures but for covers', async () => {
    expect(await listed('decoders', /^ V[A-Z.]{5} (\w+) /)).toEqual(['mjpeg', 'png']);
    expect(await listed('decoders', /^ S[A-Z.]{5} (\w+) /)).toEqual([]);
  });

  it('is no demuxer that opens other files', () => {
    const playlists = [
      'applehttp',
      'concat',
      'dash',
      'hls',
      'image2',
      'imf',
      'rtsp',
      'sdp',
      'webm_dash_manifest',
    ];
    expect(needs.demuxers.filter((name) => playlists.includes(name))).toEqual([]);
  });
});

interface Reading {
  readonly probe: Probe;
  /** Of 24 bits. */
  readonly samples: Buffer;
}

/** Decoders of lossy codecs differ between versions of ffmpeg, inaudibly. */
const MOST_APART_DB = -90;

/** Versions of ffmpeg round to other clocks, and count by other streams. */
function comparable({ isCountedByUse, beginnings, ...probed }: Probe): unknown {
  const rounded = (_: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 100) : value;
  return JSON.parse(JSON.stringify({ ...probed, beginnings: [...beginnings] }, rounded));
}

function expectSame(ours: Reading | string, stock: Reading | string, what = ''): void {
  if (typeof ours === 'string' || typeof stock === 'string') {
    expect(ours, what).toEqual(stock);
    return;
  }
  expect(comparable(ours.probe), what).toEqual(comparable(stock.probe));
  expect(ours.samples.length, what).toBe(stock.samples.length);
  if (ours.samples.equals(stock.samples)) return;
  let sum = 0;
  for (let at = 0; at < ours.samples.length; at += 3) {
    sum += ((ours.samples.readIntLE(at, 3) - stock.samples.readIntLE(at, 3)) / 2 ** 23) ** 2;
  }
  expect(10 * Math.log10(sum / (ours.samples.length / 3)), what).toBeLessThan(MOST_APART_DB);
}

/** What the service learns of a file, and the samples of all its tracks. */
async function read(tools: MediaTools, file: string): Promise<Reading | string> {
  try {
    const probed = await probe(tools, file, limits);
    const input = { file, demuxer: probed.container.demuxer };
    const raw = { muxer: 'data', options: ['-map', '0:a', '-c:a', 'pcm_s24le'] };
    const samples = await output(tools, ...composeArguments({ inputs: [input], outputs: [raw] }));
    return { probe: probed, samples };
  } catch (error) {
    if (error instanceof MediaFailure) return error.details;
    if (error instanceof ToolFailure) return error.message;
    throw error;
  }
}

describe.runIf(lean !== undefined)('it reads as the system’s does', () => {
  const tools = lean ?? systemTools;

  /** A file's clock begins with the picture here, and the sound 1.5 s later; B-frames make times of decoding differ from those of showing. */
  const pictures = {
    h264: ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2'],
    hevc: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none:bframes=2'],
    mpeg2: ['-c:v', 'mpeg2video', '-bf', '2'],
    mpeg4: ['-c:v', 'mpeg4', '-bf', '2'],
    vp8: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
    vp9: ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'],
    wmv: ['-c:v', 'wmv2'],
    flv: ['-c:v', 'flv'],
  };
  const videos: readonly (readonly [name: string, picture: keyof typeof pictures, sound: string])[] = [
    ...['mkv', 'mp4', 'mov', 'ts', 'mpg', 'flv', 'avi'].map((name) => [name, 'h264', 'libmp3lame'] as const),
    ...['mkv', 'mp4', 'ts', 'mpg'].map((name) => [name, 'hevc', 'ac3'] as const),
    ...['mkv', 'mp4', 'ts', 'mpg', 'avi'].map((name) => [name, 'mpeg2', 'mp2'] as const),
    ...['mkv', 'mp4', 'ts', 'mpg', 'avi'].map((name) => [name, 'mpeg4', 'mp2'] as const),
    ...['webm', 'mkv'].map((name) => [name, 'vp8', 'libvorbis'] as const),
    ...['webm', 'mp4'].map((name) => [name, 'vp9', 'libopus'] as const),
    ['wmv', 'wmv', 'wmav2'],
    ['flv', 'flv', 'aac'],
  ];

  const isCore = ([extension, picture]: (typeof videos)[number]): boolean =>
    ['mkv h264', 'ts h264'].includes(`${extension} ${picture}`);

  it.each(rowsOfRun(videos, isCore))('%s with %s and %s', async (extension, picture, sound) => {
    const file = await cachedMedia(`${picture}.${extension}`, [
      ...['-f', 'lavfi', '-i', 'testsrc2=s=96x64:r=25:d=2'],
      ...['-itsoffset', '1.5', '-f', 'lavfi', '-t', '1', '-i', 'anoisesrc=a=0.3:r=48000:seed=7'],
      ...['-map', '0', '-map', '1', ...pictures[picture], '-ac', '2', '-c:a', sound, '-strict', '-2'],
    ]);
    const stock = await read(systemTools, file);
    expect(stock).toMatchObject({ probe: { container: expect.anything() } });
    expectSame(await read(tools, file), stock);
  });

  const SOUND = ['-f', 'lavfi', '-t', '1', '-i', 'anoisesrc=a=0.3:r=48000:seed=7'];

  it.runIf(currentRun === 'core').each([
    { name: 'DTS', codec: 'dts', to: ['-c:a', 'dca', '-strict', '-2', '-f', 'dts'] },
    { name: 'AC-3 in S/PDIF', codec: 'ac3', to: ['-c:a', 'ac3', '-f', 'spdif'] },
  ])('$name in a WAV that calls it PCM', async ({ codec, to }) => {
    const raw = await cachedMedia(codec, [...SOUND, '-ac', '2', ...to]);
    const file = await cachedMedia(`${codec}.wav`, ['-f', 's16le', '-ar', '48000', '-ac', '2', '-i', raw]);
    const stock = await read(systemTools, file);
    expect(stock).toMatchObject({ probe: { tracks: [{ codec }] } });
    expectSame(await read(tools, file), stock);
  });

  it.runIf(currentRun === 'core')('the sound that a DV camera puts into its pictures', async () => {
    const file = folder.at('camera.avi');
    const picture = [
      '-f',
      'lavfi',
      '-i',
      'testsrc2=s=720x576:r=25:d=1',
      '-c:v',
      'dvvideo',
      '-pix_fmt',
      'yuv420p',
    ];
    const dv = await cachedMedia('camera.dv', [...SOUND, ...picture, '-ac', '2', '-c:a', 'pcm_s16le']);
    // As a camera's AVI ("type 1"): one stream of both, where ffmpeg writes one of the picture.
    const bytes = await readFile(await cachedMedia('camera.avi', ['-i', dv, '-map', '0:v', '-c', 'copy']));
    bytes.write('iavs', bytes.indexOf('strh') + 8, 'latin1');
    await writeFile(file, bytes);
    const stock = await read(systemTools, file);
    expect(stock).toMatchObject({ probe: { tracks: [{ codec: 'pcm_s16le' }] } });
    expectSame(await read(tools, file), stock);
  });

  // A hundred files are made, and read by both: patience for a busy machine.
  it.runIf(currentRun === 'all')('every container with every codec', { timeout: 400_000 }, async () => {
    for (const { name, bytes } of await baseFiles()) {
      await writeFile(folder.at(name), bytes);
      const [ours, stock] = await Promise.all([tools, systemTools].map((one) => read(one, folder.at(name))));
      expectSame(ours ?? '', stock ?? '', name);
    }
  });
});
