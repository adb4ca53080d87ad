/** Streams of HLS as ffmpeg makes them: what comes of them is what ffmpeg itself makes of the same stream, sample by sample. */
// @module-tag quick-ffmpeg
import { createCipheriv } from 'node:crypto';
import { mkdtemp, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fetchSource } from 'soundpost-media/source';
import { apartDb, decodedSamples, inspect, SAME_DB, trackSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runJob } from '../worker/outputs/outputs-run.ts';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, fileOf, placeStream, samplesOf } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

const PICTURES = ['-f', 'lavfi', '-i', 'testsrc2=s=128x72:r=25:d=12'];
const TONE = "aevalsrc='0.3*sin(880*PI*t)+0.1*sin(t*t*300)|0.2*sin(660*PI*t)':s=48000:d=12";
const OTHER_TONE = "aevalsrc='0.3*sin(440*PI*t*(1+t/20))|0.1*sin(200*PI*t)':s=48000:d=12";
const VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '50', '-pix_fmt', 'yuv420p'];
const AAC = ['-c:a', 'aac', '-b:a', '96k'];
const HLS = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];

const MUXED = [...PICTURES, '-f', 'lavfi', '-i', TONE, ...VIDEO, ...AAC];
const SOUND = ['-f', 'lavfi', '-i', TONE, ...AAC];
const OTHER_SOUND = ['-f', 'lavfi', '-i', OTHER_TONE, ...AAC];
const FMP4 = ['-hls_segment_type', 'fmp4'];
const MASTER = ['-master_pl_name', 'master.m3u8', '-var_stream_map'];
const PACKED = ['-f', 'segment', '-segment_time', '2', '-segment_list_type', 'm3u8', '-segment_list'];

/** A stream of pictures and sound apart, the sound later than the pictures. */
const late = (video: readonly string[], ...kind: readonly string[]) => [
  ...[...PICTURES, '-itsoffset', '1.5', '-f', 'lavfi', '-i', TONE, ...video, ...AAC],
  ...[
    '-map',
    '0:v',
    '-map',
    '1:a',
    ...HLS,
    ...kind,
    ...MASTER,
    'v:0,agroup:sound a:0,agroup:sound,default:yes',
  ],
];

/** Streams that ffmpeg's own muxers write. */
const written: Readonly<Record<string, (place: string) => readonly string[]>> = {
  muxed: (at) => [...MUXED, ...HLS, `${at}/index.m3u8`],
  sound: (at) => [...SOUND, ...HLS, `${at}/index.m3u8`],
  'other-sound': (at) => [...OTHER_SOUND, ...HLS, `${at}/index.m3u8`],
  later: (at) => [...OTHER_SOUND, ...HLS, '-output_ts_offset', '16', `${at}/index.m3u8`],
  'fmp4-muxed': (at) => [...MUXED, ...HLS, ...FMP4, `${at}/index.m3u8`],
  'fmp4-sound': (at) => [...SOUND, ...HLS, ...FMP4, `${at}/index.m3u8`],
  'fmp4-other-sound': (at) => [...OTHER_SOUND, ...HLS, ...FMP4, `${at}/index.m3u8`],
  'fmp4-mono': (at) => [...OTHER_SOUND, '-ac', '1', ...HLS, ...FMP4, `${at}/index.m3u8`],
  'ranges-of-fmp4': (at) => [...SOUND, ...HLS, ...FMP4, '-hls_flags', 'single_file', `${at}/index.m3u8`],
  encrypted: (at) => [...SOUND, ...HLS, '-hls_key_info_file', `${at}/key-info`, `${at}/index.m3u8`],
  'packed-aac': (at) => [...SOUND, ...PACKED, `${at}/index.m3u8`, '-segment_format', 'adts', `${at}/%d.aac`],
  'packed-mp3': (at) => [
    ...['-f', 'lavfi', '-i', TONE, '-c:a', 'libmp3lame', ...PACKED, `${at}/index.m3u8`],
    ...['-segment_format_options', 'write_xing=0:id3v2_version=0', `${at}/%d.mp3`],
  ],
  renditions: (at) => [
    ...[...PICTURES, '-f', 'lavfi', '-i', TONE, '-f', 'lavfi', '-i', OTHER_TONE, ...VIDEO, ...AAC],
    ...['-map', '0:v', '-map', '1:a', '-map', '2:a', ...HLS, ...MASTER],
    ...['v:0,agroup:sound a:0,agroup:sound,language:en,default:yes a:1,agroup:sound,language:de'],
    `${at}/%v.m3u8`,
  ],
  // Pictures that are not shown in the order in which they are decoded have two times.
  'late-ts': (at) => [...late([...VIDEO, '-bf', '2']), `${at}/%v.m3u8`],
  'late-fmp4': (at) => [...late([...VIDEO, '-bf', '2'], ...FMP4), `${at}/%v.m3u8`],
};

/** Where each of them was made. */
const places = new Map<string, string>();
const list = (name: string, playlist = 'index') => `${places.get(name)}/${playlist}.m3u8`;

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  for (const [name, args] of Object.entries(written)) places.set(name, await placeStream(folder, name, args));
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

const samples = (name: string, playlist?: string) => trackSamples(list(name, playlist));

describe('the samples are those that ffmpeg finds in the same stream', () => {
  it.each([
    ['muxed', 'mpegts', 'muxed'],
    ['fmp4-muxed', 'mp4', 'fmp4-muxed'],
    ['ranges-of-fmp4', 'mp4', 'ranges-of-fmp4'],
    ['encrypted', 'mpegts', 'sound'],
    ['packed-mp3', 'mp3', 'packed-mp3'],
  ])('%s', async (name, format, same) => {
    const result = await extract(around, web.url(`${name}/index.m3u8`), WAV);
    expect(apartDb(await samplesOf(around, result), await samples(same))).toBeLessThan(SAME_DB);
    expect(result.inputFile).toMatchObject({ name: 'index.m3u8', format });
    expect(result.inputFile.duration).toBeCloseTo(12, 0);
    expect(result.outputFile.timeline.filledSeconds).toBeLessThan(0.05);
  });

  it('addresses may be absolute, or relative to where redirects led', async () => {
    const text = await readFile(list('sound'), 'utf8');
    const lines = text.split('\n').map((line) => (/[02]\.ts$/.test(line) ? web.url(`sound/${line}`) : line));
    web.texts.set('sound/mixed.m3u8', lines.join('\n'));
    web.intercept = ({ url = '' }, response) => {
      if (!url.startsWith('/moved/')) return false;
      response.writeHead(302, { location: `/${url.slice('/moved/'.length)}` }).end();
      return true;
    };
    const result = await extract(around, web.url('moved/sound/mixed.m3u8'), WAV);
    expect(apartDb(await samplesOf(around, result), await samples('sound'))).toBeLessThan(SAME_DB);
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
    const result = await extract(around, web.url('rotated/index.m3u8'), WAV);
    expect(web.requests.filter((path) => path.includes('key')).toSorted()).toEqual([
      '/rotated/key0',
      '/rotated/key1',
    ]);
    expect(apartDb(await samplesOf(around, result), await samples('packed-aac'))).toBeLessThan(SAME_DB);
  });

  it('timestamps begin anew behind a discontinuity or jump by seconds, without a hole', async () => {
    await listTogether('together.m3u8', 'sound', 'other-sound', 'sound', 'later');
    const result = await extract(around, web.url('together.m3u8'), WAV);
    expect(
      apartDb(await samplesOf(around, result), await trackSamples(web.url('together.m3u8'))),
    ).toBeLessThan(SAME_DB);
    expect(result.inputFile.duration).toBeCloseTo(48, 0);
    expect(result.outputFile.timeline).toMatchObject({ startOffset: 0, filledSeconds: 0 });
  });
});

describe('fMP4 behind a discontinuity', () => {
  it('gives all samples of each part, one behind another, unlike ffmpeg', async () => {
    const names = ['fmp4-sound', 'fmp4-other-sound'];
    await listTogether('together.m3u8', ...names);
    const result = await extract(around, web.url('together.m3u8'), WAV);
    const got = await decodedSamples(await fileOf(around, result), 48_000);
    const parts = await Promise.all(names.map((name) => decodedSamples(list(name), 48_000)));
    expect(got.length).toBe(parts.reduce((sum, { length }) => sum + length, 0));
    expect(result.outputFile.timeline).toMatchObject({ startOffset: 0, filledSeconds: 0 });
    // The first frame of a part is mixed with the last one of the part before it.
    let at = 0;
    for (const part of parts) {
      const here = got.subarray(at + 1024, at + part.length);
      expect(largestDifference(here, part.subarray(1024))).toBeLessThan(1e-2);
      at += part.length;
    }
  });

  it('is refused when its sound is coded in another way', async () => {
    await listTogether('changing.m3u8', 'fmp4-sound', 'fmp4-mono');
    await expect(extract(around, web.url('changing.m3u8'), WAV)).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: 'the stream changes its audio coding midway',
    });
  });
});

describe('a stream with audio renditions', () => {
  it('is fetched without its pictures, and takes hardly more than its bytes', async () => {
    const result = await extract(around, web.url('renditions/master.m3u8'), WAV);
    const sound = await sizeOf('renditions', /^1\d*\.ts$/);
    const sent = [...web.sentBytes.values()].reduce((sum, bytes) => sum + bytes, 0);
    expect(sent / sound).toBeLessThan(1.05);
    // The first packets of the pictures tell when they begin.
    const others = [...web.sentBytes].filter(([name]) => /\/[02]\d*\.ts$/.test(name));
    expect(others).toEqual([['renditions/00.ts', 20 * 188]]);
    expect(apartDb(await samplesOf(around, result), await samples('renditions', '1'))).toBeLessThan(SAME_DB);
  });

  it('that is the default is what a probe describes', async () => {
    const { inputFile, outputFile } = await runJob(around, web.url('renditions/master.m3u8'), {
      output: { format: 'probe' },
    }).result;
    expect(outputFile).toBeNull();
    expect(inputFile).toMatchObject({
      duration: expect.any(Number),
      tracks: [{ index: 0, decodable: true }],
    });
  });

  it('is one for outputs that ask for it in different words; a transcript of another one fails alone', async () => {
    const made = await extract(around, web.url('renditions/master.m3u8'), [
      { ...WAV, name: 'de', track: 1 },
      { ...WAV, name: 'also-de', track: 'de' },
      { name: 'peaks', format: 'waveform', track: 'de' },
      { name: 'words', format: 'transcript', track: 'de' },
      { name: 'other', format: 'transcript', track: 0 },
      { name: 'none', format: 'transcript', track: 'fr' },
    ]);
    expect(apartDb(await samplesOf(around, made), await samples('renditions', '2'))).toBeLessThan(SAME_DB);
    expect(made.otherFiles?.map(({ format }) => format)).toEqual(['wav', 'waveform']);
    expect(made.otherFiles?.[0]?.sha256).toBe(made.outputFile.sha256);
    const oneTrack = expect.stringContaining('use only one audio track');
    expect(made.transcripts?.map(({ name, notMade }) => [name, notMade])).toEqual([
      ['words', undefined],
      ['other', oneTrack],
      ['none', oneTrack],
    ]);
  });

  it('is not two for two outputs', async () => {
    const made = extract(around, web.url('renditions/master.m3u8'), [
      { ...WAV, name: 'en' },
      { ...WAV, name: 'de', track: 'de' },
    ]);
    await expect(made).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: expect.stringMatching(/use only one audio track.*choose the same track in all outputs/),
    });
  });

  it('does not matter where all is muxed: the first track and none in particular are the same', async () => {
    const made = await extract(around, web.url('muxed/index.m3u8'), [
      { ...WAV, name: 'any' },
      { ...WAV, name: 'first', track: 0 },
    ]);
    expect(made.otherFiles?.map(({ sha256 }) => sha256)).toEqual([made.outputFile.sha256]);
  });

  describe('that begins after the pictures', () => {
    it.each(['late-ts', 'late-fmp4'])('has silence up to there, %s', async (kind) => {
      const made = await extract(around, web.url(`${kind}/master.m3u8`), [
        { ...WAV, name: 'shown' },
        { ...WAV, name: 'closed', timeline: 'audio' },
      ]);
      expect(made.outputFile.timeline.startOffset).toBe(0);
      const filled = made.outputFile.timeline.filledSeconds;
      expect(Math.abs(filled - (await lateBy(list(kind, 'master'))))).toBeLessThan(0.03);
      expect(made.inputFile.duration).toBeCloseTo(13.5, 0);
      const [closed] = made.otherFiles ?? [];
      expect(closed?.timeline?.startOffset).toBeCloseTo(1.5, 1);
      const file = await around.storage.localCopy(closed?.storageKey ?? '', around.folder);
      expect(apartDb(await trackSamples(file), await samples(kind, '1'))).toBeLessThan(SAME_DB);
    });

    it.each([
      ['cannot be fetched', '/late-ts/00.ts', undefined],
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
    async function lateBy(stream: string): Promise<number> {
      const { streams } = await inspect(stream);
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

  it('of variants alone is fetched from the lowest', async () => {
    const variants = [
      ['300000', 'none.m3u8'],
      ['200000', 'muxed/index.m3u8'],
      ['900000', 'none.m3u8'],
    ].map(([bandwidth, uri]) => `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth}\n${uri}`);
    web.texts.set('variants.m3u8', ['#EXTM3U', ...variants].join('\n'));
    const result = await extract(around, web.url('variants.m3u8'), WAV);
    expect(apartDb(await samplesOf(around, result), await samples('muxed'))).toBeLessThan(SAME_DB);
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
    const result = await extract(around, web.url('sound/index.m3u8'), WAV);
    expect(apartDb(await samplesOf(around, result), await samples('sound'))).toBeLessThan(SAME_DB);
    expect(web.requests.filter((path) => path === '/sound/index2.ts')).toHaveLength(3);
    expect(web.requests.filter((path) => path === '/sound/index1.ts')).toHaveLength(1);
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

it('headers of the source go to what lies at its origin, and to no segment or key elsewhere', async () => {
  const elsewhere = await serveStreams(folder.path);
  const abroad = await makeSurroundings(`${web.allow},${elsewhere.allow}`);
  const workspace = await mkdtemp(join(folder.path, 'work-'));
  const seen: string[] = [];
  for (const server of [web, elsewhere]) {
    server.intercept = ({ url, headers }, response) => {
      seen.push(`${server === web ? 'here' : 'there'} ${url} ${headers.authorization ?? 'nothing'}`);
      if (url !== '/encrypted/index1.ts' || server === elsewhere) return false;
      response.writeHead(302, { location: elsewhere.url('encrypted/index1.ts') }).end();
      return true;
    };
  }
  const playlist = (await readFile(list('encrypted'), 'utf8'))
    .replace('URI="key"', `URI="${elsewhere.url('encrypted/key')}"`)
    .replace('\nindex2.ts', `\n${elsewhere.url('encrypted/index2.ts')}`);
  web.texts.set('encrypted/apart.m3u8', playlist);
  try {
    await fetchSource({
      ...{
        url: web.url('encrypted/apart.m3u8'),
        headers: { Authorization: 'Canary' },
        outputs: [],
        workspace,
      },
      ...{ tools: around.services.tools, outbound: abroad.outbound, signal: new AbortController().signal },
      ...{ maxInputBytes: 1e9, maxAudioSeconds: 3600, makeRoom: async () => undefined },
    });
  } finally {
    await abroad.close();
    await elsewhere.close();
  }
  expect(seen.toSorted().slice(0, 3)).toEqual([
    ...['apart.m3u8', 'index0.ts', 'index1.ts'].map((name) => `here /encrypted/${name} Canary`),
  ]);
  expect(seen.filter((one) => one.startsWith('here')).every((one) => one.endsWith(' Canary'))).toBe(true);
  expect(seen.filter((one) => one.startsWith('there')).toSorted()).toEqual([
    ...['index1.ts', 'index2.ts', 'key'].map((name) => `there /encrypted/${name} nothing`),
  ]);
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
