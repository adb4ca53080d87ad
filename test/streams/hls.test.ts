/** Streams of HLS as ffmpeg makes them: what comes of them is what ffmpeg itself makes of the same stream, sample by sample. */
import { createCipheriv } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ExtractResult } from '../../src/queue/payloads.ts';
import { decodedSamples, ffmpeg, inspect } from '../media/oracle.ts';
import { mediaFolder } from '../media/sources.ts';
import { runJob } from '../worker/outputs/outputs-run.ts';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, fileOf, samples, samplesOf } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

const PICTURES = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25:d=12'];
const TONE = "aevalsrc='0.3*sin(880*PI*t)+0.1*sin(t*t*300)|0.2*sin(660*PI*t)':s=48000:d=12";
const OTHER_TONE = "aevalsrc='0.3*sin(440*PI*t*(1+t/20))|0.1*sin(200*PI*t)':s=48000:d=12";
const VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '50', '-pix_fmt', 'yuv420p'];
const AAC = ['-c:a', 'aac', '-b:a', '96k'];
const HLS = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];

async function make(name: string, ...options: string[]): Promise<void> {
  await mkdir(folder.at(name), { recursive: true });
  await ffmpeg('-v', 'error', ...options);
}

const MUXED = [...PICTURES, '-f', 'lavfi', '-i', TONE, ...VIDEO, ...AAC];
const SOUND = ['-f', 'lavfi', '-i', TONE, ...AAC];
const OTHER_SOUND = ['-f', 'lavfi', '-i', OTHER_TONE, ...AAC];
const FMP4 = ['-hls_segment_type', 'fmp4'];
const list = (name: string) => folder.at(`${name}/index.m3u8`);

/** Streams that ffmpeg's own muxer writes. */
const written = (): Record<string, readonly string[]> => ({
  muxed: [...MUXED, ...HLS],
  sound: [...SOUND, ...HLS],
  'other-sound': [...OTHER_SOUND, ...HLS],
  'fmp4-muxed': [...MUXED, ...HLS, ...FMP4],
  'fmp4-sound': [...SOUND, ...HLS, ...FMP4],
  'fmp4-other-sound': [...OTHER_SOUND, ...HLS, ...FMP4],
  'ranges-of-ts': [...SOUND, ...HLS, '-hls_flags', 'single_file'],
  'ranges-of-fmp4': [...SOUND, ...HLS, ...FMP4, '-hls_flags', 'single_file'],
  'encrypted-by-ffmpeg': [...SOUND, ...HLS, '-hls_key_info_file', folder.at('key-info')],
  'packed-aac': [...SOUND, '-f', 'segment', '-segment_time', '2', '-segment_format', 'adts'],
  'packed-mp3': [
    '-f',
    'lavfi',
    '-i',
    TONE,
    '-c:a',
    'libmp3lame',
    '-f',
    'segment',
    '-segment_time',
    '2',
    ...['-segment_format_options', 'write_xing=0:id3v2_version=0'],
  ],
});

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  await writeFile(folder.at('key'), 'sixteen bytes...');
  await writeFile(
    folder.at('key-info'),
    `${web.url('key')}\n${folder.at('key')}\n0123456789abcdef0123456789abcdef\n`,
  );
  for (const [name, options] of Object.entries(written())) {
    const isPacked = name.startsWith('packed');
    const output = folder.at(isPacked ? `${name}/%d.${name.slice(7)}` : `${name}/index.m3u8`);
    const index = isPacked ? ['-segment_list', list(name), '-segment_list_type', 'm3u8'] : [];
    await make(name, ...options, ...index, output);
  }
  await make(
    'renditions',
    ...[...PICTURES, '-f', 'lavfi', '-i', TONE, '-f', 'lavfi', '-i', OTHER_TONE, ...VIDEO, ...AAC],
    ...['-map', '0:v', '-map', '1:a', '-map', '2:a', ...HLS, '-master_pl_name', 'master.m3u8'],
    ...[
      '-var_stream_map',
      'v:0,agroup:sound a:0,agroup:sound,language:en,default:yes a:1,agroup:sound,language:de',
    ],
    folder.at('renditions/%v.m3u8'),
  );
}, 240_000);
afterAll(async () => {
  await around.close();
  await web.close();
});
afterEach(() => {
  expect(around.left()).toEqual([]);
  web.intercept = () => false;
  web.sentBytes.clear();
});

const WAV = { format: 'wav', copy: 'never' };

/** The job's result, after a look at its samples. */
async function expectSamplesOfFfmpeg(path: string, output: object = {}): Promise<ExtractResult> {
  const result = await extract(around, web.url(path), { ...WAV, ...output });
  expect(await samplesOf(around, result)).toBe(await samples(web.url(path)));
  return result;
}

describe('the samples are those that ffmpeg finds in the same stream', () => {
  it.each([
    ['muxed', 'mpegts'],
    ['sound', 'mpegts'],
    ['fmp4-muxed', 'mp4'],
    ['fmp4-sound', 'mp4'],
    ['ranges-of-ts', 'mpegts'],
    ['ranges-of-fmp4', 'mp4'],
    ['encrypted-by-ffmpeg', 'mpegts'],
    ['packed-aac', 'aac'],
    ['packed-mp3', 'mp3'],
  ])('%s', async (name, format) => {
    const { inputFile, outputFile } = await expectSamplesOfFfmpeg(`${name}/index.m3u8`);
    expect(inputFile).toMatchObject({ name: 'index.m3u8', format });
    expect(inputFile.duration).toBeCloseTo(12, 0);
    expect(outputFile.timeline.filledSeconds).toBeLessThan(0.05);
  });

  it('addresses may be absolute, and lead elsewhere', async () => {
    const text = await readFile(list('sound'), 'utf8');
    const lines = text.split('\n').map((line) => (line.endsWith('.ts') ? web.url(`sound/${line}`) : line));
    web.texts.set('absolute.m3u8', lines.join('\n'));
    web.intercept = ({ url = '' }, response) => {
      if (!url.startsWith('/moved/')) return false;
      response.writeHead(302, { location: `/${url.slice('/moved/'.length)}` }).end();
      return true;
    };
    await expectSamplesOfFfmpeg('absolute.m3u8');
    // What is relative is so to where the redirects led.
    await expectSamplesOfFfmpeg('moved/sound/index.m3u8');
  });

  it('keys change, and IVs are given or follow from the number of the segment', async () => {
    const segments = await segmentsOf('packed-aac');
    // A wrong IV breaks the first 16 bytes: of AAC they are sound, of a transport stream a table.
    const keys = [Buffer.from('the first key...'), Buffer.from('and the second..')];
    const playlist = HEADER.concat('#EXT-X-MEDIA-SEQUENCE:7');
    for (const [nth, { name, extinf }] of segments.entries()) {
      const key = keys[nth < 3 ? 0 : 1] ?? Buffer.alloc(16);
      const isGiven = nth % 2 === 1;
      const iv = Buffer.alloc(16);
      iv.writeUInt32BE(isGiven ? 4242 : 7 + nth, 12);
      const cipher = createCipheriv('aes-128-cbc', key, iv);
      const plain = await readFile(folder.at(`packed-aac/${name}`));
      web.texts.set(`rotated/${name}`, Buffer.concat([cipher.update(plain), cipher.final()]));
      const given = isGiven ? `,IV=0x${iv.toString('hex')}` : '';
      playlist.push(`#EXT-X-KEY:METHOD=AES-128,URI="key${nth < 3 ? 0 : 1}"${given}`, extinf, name);
    }
    for (const [nth, key] of keys.entries()) web.texts.set(`rotated/key${nth}`, key);
    web.texts.set('rotated/index.m3u8', [...playlist, '#EXT-X-ENDLIST'].join('\n'));
    web.requests.length = 0;
    await extract(around, web.url('rotated/index.m3u8'), WAV);
    expect(web.requests.filter((path) => path.includes('key')).toSorted()).toEqual([
      '/rotated/key0',
      '/rotated/key1',
    ]);
    await expectSamplesOfFfmpeg('rotated/index.m3u8');
  });

  it('timestamps begin anew behind a discontinuity, without a hole', async () => {
    await listTogether('together.m3u8', 'sound', 'other-sound', 'sound');
    const { inputFile, outputFile } = await expectSamplesOfFfmpeg('together.m3u8');
    expect(inputFile.duration).toBeCloseTo(36, 0);
    expect(outputFile.timeline).toMatchObject({ startOffset: 0, filledSeconds: 0 });
  });

  it('a jump of a few seconds at a discontinuity is no silence', async () => {
    await make('later', ...OTHER_SOUND, ...HLS, '-output_ts_offset', '16', list('later'));
    await listTogether('jump.m3u8', 'sound', 'later');
    const { inputFile, outputFile } = await expectSamplesOfFfmpeg('jump.m3u8');
    expect(inputFile.duration).toBeCloseTo(24, 0);
    expect(outputFile.timeline).toMatchObject({ filledSeconds: 0 });
  });
});

describe('fMP4 behind a discontinuity', () => {
  it('gives all samples of each part, one behind another, unlike ffmpeg', async () => {
    const names = ['fmp4-sound', 'fmp4-other-sound', 'fmp4-sound'];
    await listTogether('together.m3u8', ...names);
    const result = await extract(around, web.url('together.m3u8'), WAV);
    const got = await decodedSamples(await fileOf(around, result), 48_000);
    const parts = await Promise.all(names.map((name) => decodedSamples(list(name), 48_000)));
    const wanted = Float32Array.from(parts.flatMap((part) => [...part]));
    expect(got.length).toBe(wanted.length);
    expect(result.outputFile.timeline).toMatchObject({ startOffset: 0, filledSeconds: 0 });
    // The first frame of a part is mixed with the last one of the part before it.
    let at = 0;
    for (const part of parts) {
      expect(largestDifference(got.subarray(at + 1024, at + part.length), part.subarray(1024))).toBeLessThan(
        1e-2,
      );
      at += part.length;
    }
  });

  it('is refused when its sound is coded in another way', async () => {
    await make('mono', ...OTHER_SOUND, '-ac', '1', ...HLS, ...FMP4, list('mono'));
    await listTogether('changing.m3u8', 'fmp4-sound', 'mono');
    await expect(extract(around, web.url('changing.m3u8'), WAV)).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: 'the stream changes how its sound is coded in the middle',
    });
  });
});

describe('a stream with audio renditions', () => {
  it('is fetched without its pictures, and takes hardly more than its bytes', async () => {
    const result = await extract(around, web.url('renditions/master.m3u8'), { format: 'm4a' });
    expect(result.outputFile.copied).toBe(true);
    const sound = await sizeOf('renditions', /^1\d*\.ts$/);
    const sent = [...web.sentBytes.values()].reduce((sum, bytes) => sum + bytes, 0);
    expect(sent / sound).toBeLessThan(1.05);
    // The first packets of the pictures tell when they begin.
    const others = [...web.sentBytes].filter(([name]) => /\/[02]\d*\.ts$/.test(name));
    expect(others).toEqual([['renditions/00.ts', 20 * 188]]);
    expect(await samplesOf(around, await extract(around, web.url('renditions/master.m3u8'), WAV))).toBe(
      await samples(web.url('renditions/1.m3u8')),
    );
  });

  it.each([
    [1, '2'],
    ['de', '2'],
    ['en', '1'],
  ])('is asked for track %s', async (track, playlist) => {
    const result = await extract(around, web.url('renditions/master.m3u8'), { ...WAV, track });
    expect(await samplesOf(around, result)).toBe(await samples(web.url(`renditions/${playlist}.m3u8`)));
  });

  it('is one for outputs that ask for it in different words; a transcript of another one fails alone', async () => {
    const { result } = runJob(around, web.url('renditions/master.m3u8'), {
      outputs: [
        { ...WAV, name: 'de', track: 1 },
        { ...WAV, name: 'also-de', track: 'de' },
        { name: 'words', format: 'transcript', track: 'de' },
        { name: 'other', format: 'transcript', track: 0 },
        { name: 'none', format: 'transcript', track: 'fr' },
      ],
    });
    const made = await result;
    expect(await samplesOf(around, made)).toBe(await samples(web.url('renditions/2.m3u8')));
    expect(made.otherFiles?.map(({ sha256 }) => sha256)).toEqual([made.outputFile.sha256]);
    const oneTrack = expect.stringContaining('takes one audio track');
    expect(made.transcripts?.map(({ name, notMade }) => [name, notMade])).toEqual([
      ['words', undefined],
      ['other', oneTrack],
      ['none', oneTrack],
    ]);
  });

  it('is not two for two outputs', async () => {
    const { result } = runJob(around, web.url('renditions/master.m3u8'), {
      outputs: [
        { ...WAV, name: 'en' },
        { ...WAV, name: 'de', track: 'de' },
      ],
    });
    await expect(result).rejects.toMatchObject({ details: expect.stringContaining('takes one audio track') });
  });

  it('does not matter where all is muxed: the first track and none in particular are the same', async () => {
    const { result } = runJob(around, web.url('muxed/index.m3u8'), {
      outputs: [
        { ...WAV, name: 'any' },
        { ...WAV, name: 'first', track: 0 },
      ],
    });
    const made = await result;
    expect(made.otherFiles?.map(({ sha256 }) => sha256)).toEqual([made.outputFile.sha256]);
  });

  describe('that begins after the pictures', () => {
    // Pictures that are not shown in the order in which they are decoded have two times.
    const kinds = {
      ts: VIDEO,
      'ts-reordered': [...VIDEO, '-bf', '2'],
      fmp4: VIDEO,
      'fmp4-reordered': [...VIDEO, '-bf', '2'],
    };
    beforeAll(async () => {
      for (const [kind, video] of Object.entries(kinds)) {
        await make(
          `late-${kind}`,
          ...[...PICTURES, '-itsoffset', '1.5', '-f', 'lavfi', '-i', TONE, ...video, ...AAC],
          ...['-map', '0:v', '-map', '1:a', ...HLS, ...(kind.startsWith('fmp4') ? FMP4 : [])],
          ...[
            '-master_pl_name',
            'master.m3u8',
            '-var_stream_map',
            'v:0,agroup:sound a:0,agroup:sound,default:yes',
          ],
          folder.at(`late-${kind}/%v.m3u8`),
        );
      }
    });

    it.each(Object.keys(kinds))('has silence up to there, %s', async (kind) => {
      const path = web.url(`late-${kind}/master.m3u8`);
      const result = await extract(around, path, WAV);
      expect(result.outputFile.timeline.startOffset).toBe(0);
      expect(Math.abs(result.outputFile.timeline.filledSeconds - (await lateBy(path)))).toBeLessThan(0.03);
      expect(result.inputFile.duration).toBeCloseTo(13.5, 0);
      const closed = await extract(around, path, { ...WAV, timeline: 'audio' });
      expect(closed.outputFile.timeline.startOffset).toBeCloseTo(1.5, 1);
      expect(await samplesOf(around, closed)).toBe(await samples(web.url(`late-${kind}/1.m3u8`)));
    });

    it.each([
      ['cannot be fetched', '/late-ts/00.ts', undefined],
      ['have no playlist', '/late-ts/0.m3u8', undefined],
      ['are not of a known kind', undefined, 'late-ts/00.ts'],
    ])('is taken from its own beginning where the pictures %s', async (_case, missing, garbled) => {
      web.intercept = ({ url }, response) => {
        if (url !== missing) return false;
        response.writeHead(404).end();
        return true;
      };
      if (garbled !== undefined) web.texts.set(garbled, 'x'.repeat(10_000));
      const { outputFile } = await extract(around, web.url('late-ts/master.m3u8'), WAV);
      web.texts.delete(garbled ?? '');
      expect(outputFile.timeline).toMatchObject({ startOffset: 0, filledSeconds: 0 });
    });

    /** How much later ffmpeg itself finds the sound than the pictures. */
    async function lateBy(url: string): Promise<number> {
      const { streams } = await inspect(url);
      const start = (kind: string) =>
        Number(streams.find(({ codec_type }) => codec_type === kind)?.start_time);
      return start('audio') - start('video');
    }
  });

  it('tells which there are when the one that is asked for is not among them', async () => {
    const job = extract(around, web.url('renditions/master.m3u8'), { ...WAV, track: 'fr' });
    await expect(job).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: expect.stringMatching(/^no audio track fr; the stream has 0: en, .*; 1: de, /),
    });
  });

  it('makes several outputs of one track, and of several tracks none', async () => {
    const master = web.url('renditions/master.m3u8');
    const result = await extract(around, master, [
      { ...WAV, name: 'whole', track: 'de' },
      { name: 'peaks', format: 'waveform', track: 'de' },
    ]);
    expect(await samplesOf(around, result)).toBe(await samples(web.url('renditions/2.m3u8')));
    expect(result.otherFiles).toMatchObject([{ name: 'peaks', format: 'waveform' }]);
    const job = extract(around, master, [
      { ...WAV, name: 'de', track: 'de' },
      { ...WAV, name: 'en', track: 'en' },
    ]);
    await expect(job).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: expect.stringContaining('ask for the same track in all outputs'),
    });
  });

  it('of variants alone is fetched from the lowest', async () => {
    const variants = [
      ['300000', 'fmp4-muxed/index.m3u8'],
      ['200000', 'muxed/index.m3u8'],
      ['900000', 'none.m3u8'],
    ].map(([bandwidth, uri]) => `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth}\n${uri}`);
    web.texts.set('variants.m3u8', ['#EXTM3U', ...variants].join('\n'));
    const result = await extract(around, web.url('variants.m3u8'), WAV);
    expect(result.inputFile.format).toBe('mpegts');
    expect(await samplesOf(around, result)).toBe(await samples(web.url('muxed/index.m3u8')));
  });
});

describe('a segment that fails', () => {
  it('is asked for again, alone', async () => {
    let failures = 0;
    web.requests.length = 0;
    web.intercept = ({ url }, response) => {
      if (url !== '/sound/index2.ts' || failures === 2) return false;
      failures += 1;
      if (failures === 1) response.writeHead(503).end();
      else response.writeHead(200, { 'content-length': 100_000 }).write('half', () => response.destroy());
      return true;
    };
    await expectSamplesOfFfmpeg('sound/index.m3u8');
    const asked = web.requests.slice(0, web.requests.lastIndexOf('/sound/index.m3u8'));
    expect(asked.filter((path) => path === '/sound/index2.ts')).toHaveLength(3);
    expect(asked.filter((path) => path === '/sound/index1.ts')).toHaveLength(1);
  });

  it('for good ends the job with what the server said', async () => {
    web.intercept = ({ url }, response) => {
      if (url !== '/sound/index2.ts') return false;
      response.writeHead(410).end();
      return true;
    };
    await expect(extract(around, web.url('sound/index.m3u8'), WAV)).rejects.toMatchObject({
      code: 'DOWNLOAD_FAILED',
      details: 'HTTP 410',
    });
  });
});

const HEADER = ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:3'];

async function segmentsOf(name: string): Promise<{ name: string; extinf: string }[]> {
  const lines = (await readFile(list(name), 'utf8')).split('\n');
  return lines.flatMap((line, at) =>
    /^[^#].*\.(ts|aac)$/.test(line) ? [{ name: line, extinf: lines[at - 1] ?? '' }] : [],
  );
}

/** A playlist of several, with discontinuities. */
async function listTogether(path: string, ...names: readonly string[]): Promise<void> {
  const parts = await Promise.all(names.map(partOf));
  web.texts.set(path, [...HEADER, parts.join('\n#EXT-X-DISCONTINUITY\n'), '#EXT-X-ENDLIST'].join('\n'));
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((most, sample, at) => Math.max(most, Math.abs(sample - (b[at] ?? 0))), 0);
}

/** The lines of a playlist from its first segment on, to stand in one beside its folder. */
async function partOf(name: string): Promise<string> {
  const lines = (await readFile(list(name), 'utf8')).split('\n');
  return lines
    .filter((line) => line !== '' && (!line.startsWith('#') || /^#(EXTINF|EXT-X-MAP)/.test(line)))
    .map((line) =>
      line.startsWith('#EXTINF') ? line : line.replace(/(URI=")?([^"#]+)("?)$/, `$1${name}/$2$3`),
    )
    .map((line) => (line.startsWith('#EXT-X-MAP') ? `#EXT-X-MAP:URI="${name}/init.mp4"` : line))
    .join('\n');
}

async function sizeOf(name: string, files: RegExp): Promise<number> {
  const names = (await readdir(folder.at(name))).filter((file) => files.test(file));
  const sizes = await Promise.all(names.map(async (file) => (await stat(folder.at(`${name}/${file}`))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
