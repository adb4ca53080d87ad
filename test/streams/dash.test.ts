/** Presentations of DASH as ffmpeg makes them, in every form of address that the standard has. */
// @module-tag quick-ffmpeg
import { readdir, readFile } from 'node:fs/promises';
import { apartDb, decodedSamples, inspect, SAME_DB, trackSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Made } from '../jobs/job-result.ts';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, fileOf, placeStream, samplesOf } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

const SECONDS = 12;
const PICTURES = ['-f', 'lavfi', '-i', `testsrc2=s=64x36:r=25:d=${SECONDS}`];
const sound = (hertz: number) => [
  ...[
    '-f',
    'lavfi',
    '-i',
    `aevalsrc='0.3*sin(${hertz}*2*PI*t*(1+t/50))|0.2*sin(660*PI*t)':s=48000:d=${SECONDS}`,
  ],
];
const CODECS = '-c:v libx264 -preset ultrafast -g 50 -pix_fmt yuv420p -c:a aac -b:a 96k'.split(' ');
const DASH = ['-f', 'dash', '-seg_duration', '2'];
const WAV = { format: 'wav', copy: 'never' };

const written: Readonly<Record<string, readonly string[]>> = {
  timeline: ['-use_timeline', '1', '-use_template', '1'],
  number: ['-use_timeline', '0', '-use_template', '1'],
  list: ['-use_timeline', '0', '-use_template', '0'],
  ranges: ['-single_file', '1'],
};

const SETS = ['-adaptation_sets', 'id=0,streams=0 id=1,streams=1'];
const LANGUAGES = ['-metadata:s:a:0', 'language=en', '-metadata:s:a:1', 'language=de'];

/** Where each of them was made. */
const places = new Map<string, string>();

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  const maps = ['-map', '0:v', '-map', '1:a'];
  for (const [name, options] of Object.entries(written)) {
    await dash(name, ...PICTURES, ...sound(440), ...maps, ...CODECS, ...DASH, ...options);
  }
  await dash('webm', ...sound(440), '-c:a', 'libopus', ...DASH, '-dash_segment_type', 'webm');
  const both = [...sound(440), ...sound(300), '-map', '0:a', '-map', '1:a', ...LANGUAGES];
  await dash('languages', ...both, '-c:a', 'aac', ...DASH, ...SETS);
  const ts = [...sound(440), '-c:a', 'aac', '-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];
  const args = (place: string) => [...ts, '-output_ts_offset', '20', `${place}/index.m3u8`];
  places.set('mp2t', await placeStream(folder, 'mp2t', args));
}, 240_000);
afterAll(async () => {
  await around.close();
  await web.close();
});
afterEach(() => {
  expect(around.left()).toEqual([]);
  web.sentBytes.clear();
});

async function dash(name: string, ...options: string[]): Promise<void> {
  places.set(name, await placeStream(folder, name, (place) => [...options, `${place}/index.mpd`]));
}

/** What ffmpeg decodes of a representation's files, one behind another. */
async function filesOf(name: string, stream: number, most?: number): Promise<string> {
  const names = (await readdir(folder.at(name))).filter((file) => file.includes(`stream${stream}`));
  const chunks = names
    .filter((file) => file.startsWith('chunk'))
    .toSorted()
    .slice(0, most);
  const files = [...names.filter((file) => file.startsWith('init')), ...chunks];
  return `concat:${files.map((file) => `${places.get(name)}/${file}`).join('|')}`;
}

/** ffmpeg 7 leaves the encoder's delay out, as the edit list says; 5 plays it, in fragments. */
const DELAY_SAMPLES = 1024;

function expectSame(got: Buffer, wanted: Buffer): void {
  const more = wanted.length - got.length;
  expect([0, DELAY_SAMPLES * 4]).toContain(more);
  expect(apartDb(got, wanted.subarray(more))).toBeLessThan(SAME_DB);
}

const manifest = (name: string) => readFile(folder.at(`${name}/index.mpd`), 'utf8');

describe('the sound of a presentation is fetched without its pictures', () => {
  it.each([
    ['timeline', 'timeline', undefined],
    // What lies behind the presentation's end is none of it.
    ['number', 'number', SECONDS / 2],
    ['list', 'timeline', undefined],
    ['ranges', 'timeline', undefined],
  ])('%s', async (name, files, chunks) => {
    const result = await extract(around, web.url(`${name}/index.mpd`), WAV);
    expect(result.inputFile).toMatchObject({ name: 'index.mpd', format: 'mp4' });
    expect(result.inputFile.duration).toBeCloseTo(SECONDS, 0);
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf(files, 1, chunks)));
    const pictures = [...web.sentBytes.keys()].filter((path) => path.includes('stream0'));
    expect(pictures).toEqual([]);
  });

  // Of a clock of 10 MHz that counts from 1970, plus one: no double holds it.
  it('a template of times from 17_000_000_000_000_001 on', async () => {
    const zero = 17_000_000_000_000_001n;
    const text = await manifest('timeline');
    const [init, ...chunks] = (await filesOf('timeline', 1)).slice('concat:'.length).split('|');
    let time = zero;
    const ticks = [
      ...text.slice(text.lastIndexOf('<SegmentTimeline>')).matchAll(/d="(\d+)"(?: r="(\d+)")?/g),
    ];
    const lengths = ticks.flatMap(([, d, r = '0']) => Array.from({ length: Number(r) + 1 }, () => Number(d)));
    for (const [nth, chunk] of chunks.entries()) {
      web.texts.set(`times/1-${String(time).padStart(9, '0')}.m4s`, await readFile(chunk));
      time += BigInt(lengths[nth] ?? 0);
    }
    web.texts.set('times/1.init', await readFile(init ?? ''));
    const media = 'media="$RepresentationID$-$Time%09d$.m4s"';
    web.texts.set(
      'times/index.mpd',
      text
        .replaceAll(/initialization="[^"]*"/g, 'initialization="$RepresentationID$.init"')
        .replaceAll(/media="[^"]*"/g, `presentationTimeOffset="${zero}" ${media}`)
        .replaceAll('<S t="0"', `<S t="${zero}"`),
    );
    const result = await extract(around, web.url('times/index.mpd'), WAV);
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf('timeline', 1)));
  });

  it('SegmentBase: one file is fetched as any file', async () => {
    const text = (await manifest('ranges')).replaceAll(
      /<SegmentList[\s\S]*?<\/SegmentList>/g,
      '<SegmentBase indexRange="765-900"><Initialization range="0-764"/></SegmentBase>',
    );
    web.texts.set('ranges/base.mpd', text);
    const result = await extract(around, web.url('ranges/base.mpd'), WAV);
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf('timeline', 1)));
    expect([...web.sentBytes.keys()].filter((path) => path.includes('stream0'))).toEqual([]);
  });

  it('WebM', async () => {
    const result = await extract(around, web.url('webm/index.mpd'), { ...WAV, sampleRate: 48000 });
    expect(result.inputFile.format).toBe('webm');
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf('webm', 0)));
  });

  it('a BaseURL is what the addresses are relative to', async () => {
    const text = (await manifest('list')).replace('<Period', `<BaseURL>${web.url('list/')}</BaseURL><Period`);
    web.texts.set('elsewhere.mpd', text);
    const result = await extract(around, web.url('elsewhere.mpd'), WAV);
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf('timeline', 1)));
  });
});

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((most, sample, at) => Math.max(most, Math.abs(sample - (b[at] ?? 9))), 0);
}

describe('of several sets', () => {
  it('the first is the one where none is asked for', async () => {
    const result = await extract(around, web.url('languages/index.mpd'), WAV);
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf('languages', 0)));
  });

  it('an encrypted one is passed over where none is asked for', async () => {
    const text = await manifest('languages');
    const end = text.indexOf('>', text.indexOf('<AdaptationSet')) + 1;
    const mark = '<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc"/>';
    web.texts.set('languages/drm.mpd', text.slice(0, end) + mark + text.slice(end));
    const result = await extract(around, web.url('languages/drm.mpd'), WAV);
    expectSame(await samplesOf(around, result), await trackSamples(await filesOf('languages', 1)));
    await expect(extract(around, web.url('languages/drm.mpd'), { ...WAV, track: 0 })).rejects.toMatchObject({
      code: 'INVALID_VIDEO',
      details: expect.stringMatching(/^encrypted: /),
    });
  });

  it('that there is no such one is told with those that there are', async () => {
    await expect(extract(around, web.url('languages/index.mpd'), { ...WAV, track: 7 })).rejects.toMatchObject(
      {
        code: 'EXTRACTION_FAILED',
        details: 'no audio track 7; the stream has 0: en; 1: de',
      },
    );
  });

  it('outputs that ask for one in different words have the same sound; a transcript of another one fails alone', async () => {
    const made = await extract(around, web.url('languages/index.mpd'), [
      { ...WAV, name: 'second', track: 1 },
      { ...WAV, name: 'de', track: 'de' },
      { name: 'words', format: 'transcript', track: 'de' },
      { name: 'other', format: 'transcript', track: 'en' },
    ]);
    expectSame(await samplesOf(around, made), await trackSamples(await filesOf('languages', 1)));
    expect(made.otherFiles?.map(({ sha256 }) => sha256)).toEqual([made.outputFile.sha256]);
    expect(made.transcripts?.map(({ name, notMade }) => [name, notMade])).toEqual([
      ['words', undefined],
      ['other', expect.stringContaining('use only one audio track')],
    ]);
  });

  it('two of them are not for one job', async () => {
    const made = extract(around, web.url('languages/index.mpd'), [
      { ...WAV, name: 'en', track: 0 },
      { ...WAV, name: 'de', track: 1 },
    ]);
    await expect(made).rejects.toMatchObject({
      details: expect.stringContaining('use only one audio track'),
    });
  });
});

describe('the presentation has a clock', () => {
  it('that begins before the sound does', async () => {
    // The media's time 0 is second 3 of the presentation.
    const text = (await manifest('timeline')).replace('start="PT0.0S"', 'start="PT3S"');
    web.texts.set('timeline/late.mpd', text);
    await expectLate(await extract(around, web.url('timeline/late.mpd'), LATE));
  });

  /** From second 3 on, and all of it. */
  const LATE = [
    { ...WAV, name: 'shown' },
    { ...WAV, name: 'closed', timeline: 'audio' },
  ];
  async function expectLate({ inputFile, outputFile, otherFiles }: Made): Promise<void> {
    expect(outputFile.timeline).toMatchObject({ startOffset: 0 });
    expect(outputFile.timeline.filledSeconds).toBeCloseTo(3, 1);
    expect(inputFile.duration).toBeCloseTo(SECONDS + 3, 0);
    expect(otherFiles?.[0]?.timeline?.startOffset).toBeCloseTo(3, 1);
    expect(otherFiles?.[0]?.duration).toBeCloseTo(SECONDS, 0);
  }

  it('on which several periods follow one another', async () => {
    const text = await manifest('timeline');
    const [period = ''] = /<Period[\s\S]*<\/Period>/.exec(text) ?? [];
    const second = period.replace(/<Period[^>]*>/, `<Period id="1" start="PT${SECONDS + 1}S">`);
    web.texts.set('timeline/periods.mpd', text.replace(period, `${period}\n${second}`));
    const result = await extract(around, web.url('timeline/periods.mpd'), WAV);
    const part = await decodedSamples(await filesOf('timeline', 1), 48_000);
    const got = await decodedSamples(await fileOf(around, result), 48_000);
    expect(got.length / 48_000).toBeCloseTo(SECONDS + 1 + part.length / 48_000, 1);
    const more = (SECONDS + 1) * 48_000 + part.length - got.length;
    expect([0, DELAY_SAMPLES]).toContain(more);
    const begins = (SECONDS + 1) * 48_000 - more;
    const differences = part
      .slice(2048)
      .map((sample, at) => Math.abs(sample - (got[begins + 2048 + at] ?? 9)));
    expect(Math.max(...differences.slice(0, 100_000))).toBeLessThan(1e-2);
  });

  describe('of single files', () => {
    const single = (periods: readonly string[]) =>
      `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT${SECONDS}S">${periods.join('')}</MPD>`;
    const period = (attributes: string, base: string) =>
      `<Period ${attributes}><AdaptationSet contentType="audio"><Representation id="1" bandwidth="96000"><BaseURL>sound.mp4</BaseURL>${base}</Representation></AdaptationSet></Period>`;
    const extractSingle = async (
      name: string,
      output: object | readonly object[],
      ...periods: readonly string[]
    ) => {
      web.texts.set(`ranges/${name}.mpd`, single(periods));
      web.texts.set('ranges/sound.mp4', await readFile(folder.at('ranges/index-stream1.mp4')));
      return extract(around, web.url(`ranges/${name}.mpd`), output);
    };

    it('that begin with their period', async () => {
      await expectLate(await extractSingle('late', LATE, period('start="PT3S"', '')));
    });

    it('of which each period shows its part', async () => {
      const at = (seconds: number) =>
        `<SegmentBase timescale="10" presentationTimeOffset="${seconds * 10}"/>`;
      const periods = [
        period('duration="PT4S"', at(6)),
        period('duration="PT2S"', at(0)),
        period('duration="PT2S"', at(10)),
      ];
      const result = await extractSingle('parts', WAV, ...periods);
      await expectParts(result, [
        [6, 4],
        [0, 2],
        [10, 2],
      ]);
    });

    /** The file holds these stretches, one behind another. */
    async function expectParts(
      result: Awaited<ReturnType<typeof extract>>,
      parts: readonly [from: number, seconds: number][],
    ) {
      const whole = await decodedSamples(await filesOf('timeline', 1), 48_000);
      const got = await decodedSamples(await fileOf(around, result), 48_000);
      let at = 0;
      for (const [from, seconds] of parts) {
        // Where a part begins depends on the borders of its fragments; what is less than 40 ms from its place is not moved.
        const middle = got.subarray((at + 1) * 48_000, (at + 1) * 48_000 + 4_000);
        const differences = Array.from({ length: 8_000 }, (_, nth) => {
          const begin = (from + 1) * 48_000 + nth - 4_000;
          return largestDifference(middle, whole.subarray(begin, begin + middle.length));
        });
        expect(Math.min(...differences), `from ${from}`).toBeLessThan(1e-2);
        at += seconds;
      }
      expect(got.length / 48_000).toBeCloseTo(at, 0);
    }
  });

  it('of transport streams as well', async () => {
    const names = (await readdir(folder.at('mp2t'))).filter((name) => name.endsWith('.ts')).toSorted();
    expect(names).toHaveLength(7);
    const { streams } = await inspect(`${places.get('mp2t')}/index0.ts`);
    const start = Number(streams[0]?.start_time);
    expect(start).toBeGreaterThan(20);
    const list = (offset: number) =>
      `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period duration="PT12S"><AdaptationSet mimeType="audio/mp2t"><Representation id="1" bandwidth="96000"><SegmentList timescale="1000" duration="2000" presentationTimeOffset="${Math.floor(offset * 1000)}">${names.map((name) => `<SegmentURL media="${name}"/>`).join('')}</SegmentList></Representation></AdaptationSet></Period></MPD>`;
    web.texts.set('mp2t/index.mpd', list(start));
    const whole = `concat:${names.map((name) => `${places.get('mp2t')}/${name}`).join('|')}`;
    const result = await extract(around, web.url('mp2t/index.mpd'), WAV);
    expect(result.inputFile.format).toBe('mpegts');
    expect(apartDb(await samplesOf(around, result), await trackSamples(whole))).toBeLessThan(SAME_DB);
    web.texts.set('mp2t/late.mpd', list(start - 3));
    const late = await extract(around, web.url('mp2t/late.mpd'), WAV);
    expect(late.outputFile.timeline.filledSeconds).toBeCloseTo(3, 1);
  });
});
