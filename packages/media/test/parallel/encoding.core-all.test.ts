/** A long output that is encoded in parts at the same time is what one run would have made of it. */
// @module-tag quick-ffmpeg
import { copyFile, readdir, readFile, truncate } from 'node:fs/promises';
import { basename } from 'node:path';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, type OneExtraction, type OneOptions, startedBy, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { realTimeTools } from 'soundpost-testing/media-tools';
import { decodedSamples, ffmpeg, inspect } from 'soundpost-testing/oracle';
import { processesOver } from 'soundpost-testing/processes';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { crc16, infoOf, mp3Of, oggPagesOf, opusPacketsOf } from './containers.ts';
import { cores } from './cores.ts';

const folder = mediaFolder();
const SECONDS = 26;

const SPEECH =
  'flite=text=The sound post is a small piece of wood inside a violin that carries the sound from the top to the back. It is held in place by friction alone';
const CHORDS =
  "aevalsrc='0.3*sin(2*PI*(220+60*floor(mod(t*2,7)))*t)*exp(-3*mod(t,0.5))+0.2*sin(880*PI*t)*(0.5+0.5*sin(t/3))|" +
  "0.3*sin(2*PI*(330+40*floor(mod(t*3,5)))*t)*exp(-2*mod(t,0.33))':s=44100";
const NOISE = 'anoisesrc=a=0.3:r=48000:c=pink:seed=7,aformat=channel_layouts=stereo';
const SILENCE = 'anullsrc=r=48000:cl=stereo';

/** As short as parts may be for two encoders to agree on all of these. */
const lengths = { minPartSeconds: 12, overlapSeconds: 8 };

const made = (name: string, graph: string, ...options: string[]) =>
  cachedMedia(name, ['-f', 'lavfi', '-t', String(SECONDS), '-i', graph, ...options]);

const sources = {
  async 'speech.wav'() {
    const phrase = await made('phrase.wav', SPEECH);
    const inputs = ['-stream_loop', '-1', '-i', phrase, '-t', String(SECONDS)];
    return cachedMedia('speech.wav', [...inputs, '-ar', '22050']);
  },
  'chords.wav': () => made('chords.wav', CHORDS),
  'noise.wav': () => made('noise.wav', NOISE),
  'silence.wav': () => made('silence.wav', SILENCE),
  'chords.mp4': () =>
    made('chords.mp4', CHORDS, '-c:a', 'aac', '-metadata', 'title=Étude', '-movflags', '+faststart'),
};

type Source = keyof typeof sources;

interface Both {
  readonly one: OneExtraction;
  readonly parts: OneExtraction;
  /** Why the parts could not be joined. */
  readonly unjoined: string[];
}

let numbered = 0;

/** The same output in one run and in as many parts as there are cores. */
async function bothWays(source: Source, request: object, count = 2, shape = lengths): Promise<Both> {
  numbered += 1;
  const name = String(numbered);
  const unjoined: string[] = [];
  const { held, takeIdle } = cores(count);
  const asked = { copy: 'never', ...request };
  const input = await sources[source]();
  const one = await extract(input, folder.at(`${name}.one`), asked);
  const fractions: number[] = [];
  const parts = await extract(input, folder.at(`${name}.parts`), asked, {
    parallel: { takeIdle, lengths: shape, onUnjoined: (why) => unjoined.push(why) },
    onProgress: (fraction) => fractions.push(fraction),
  });
  expect(fractions.at(-1)).toBe(1);
  expect(fractions).toEqual(fractions.toSorted((a, b) => a - b));
  expect(held).toEqual({ asked: expect.any(Number), now: 0 });
  expect(held.asked).toBeGreaterThanOrEqual(count);
  return { one, parts, unjoined };
}

/** What ffmpeg hears, and that it has nothing to say against the file. */
async function heard(file: string): Promise<string> {
  const { stdout, stderr } = await ffmpeg('-v', 'warning', '-i', file, '-map', '0:a', '-f', 'md5', '-');
  expect(stderr).toBe('');
  return stdout.toString();
}

async function samplesOf(file: string): Promise<number> {
  return (await decodedSamples(file, 48_000)).length;
}

/** Everything that is said of the file, but where it is. */
function saidOf({ output, sourceSeconds }: OneExtraction) {
  const { path, sizeBytes, parts, ...rest } = output;
  return { ...rest, sourceSeconds };
}

describe('mp3', () => {
  it.each(
    rowsOfRun(
      [
        ['chords.mp4', { bitrate: '128k' }],
        ['speech.wav', { bitrate: '32k' }],
        ['speech.wav', { bitrate: '64k', sampleRate: 8000 }],
        ['speech.wav', { bitrate: '128k', sampleRate: 44_100 }],
        ['chords.wav', { bitrate: '32k', sampleRate: 48_000 }],
        ['chords.wav', { bitrate: '128k' }],
        ['chords.wav', { bitrate: '192k', channels: 1 }],
        ['chords.mp4', { bitrate: '320k', sampleRate: 48_000 }],
        ['chords.mp4', { start: 0.5, end: 25.25 }],
        ['noise.wav', { bitrate: '128k' }],
        ['chords.wav', { normalize: true }],
        ['speech.wav', { loudness: -30, sampleRate: 44_100 }],
        ['silence.wav', { bitrate: '192k' }],
      ],
      1,
    ),
  )('of %s with %o sounds the same to the last sample', async (source: Source, request) => {
    const { one, parts, unjoined } = await bothWays(source, { format: 'mp3', ...request });
    expect(unjoined).toEqual([]);
    expect(saidOf(parts)).toEqual(saidOf(one));
    const { title } = (await inspect(parts.output.path)).tags;
    expect(title).toBe(source === 'chords.mp4' ? 'Étude' : undefined);
    expect(await heard(parts.output.path)).toBe(await heard(one.output.path));
    expect(parts.output.sizeBytes).toBe(one.output.sizeBytes);
    const [joined, single] = [await mp3Of(parts.output.path), await mp3Of(one.output.path)];
    const info = infoOf(joined);
    expect({ ...info, musicCrc: 0, tagCrc: 0 }).toEqual({ ...infoOf(single), musicCrc: 0, tagCrc: 0 });
    expect(info.frames).toBe(joined.frames.length);
    expect(info.musicCrc).toBe(crc16(...joined.frames));
    // ffmpeg counts 190 bytes whatever the frame's length, and the checksum itself as 0.
    const tag = Buffer.concat([joined.infoFrame, Buffer.alloc(190)]);
    tag.writeUInt16BE(0, Math.max(tag.indexOf('Info'), tag.indexOf('Xing')) + 154);
    expect(info.tagCrc).toBe(crc16(tag.subarray(0, 190)));
    if (joined.frames.every((frame, nth) => single.frames[nth]?.equals(frame))) {
      expect(joined.infoFrame).toEqual(single.infoFrame);
    }
  });
});

describe('opus', () => {
  it.each(
    rowsOfRun(
      [
        ['speech.wav', { bitrate: '80k' }],
        ['speech.wav', { bitrate: '128k' }],
        ['chords.wav', { bitrate: '128k' }],
        ['chords.mp4', { bitrate: '192k', channels: 1 }],
        ['noise.wav', { bitrate: '510k' }],
        ['silence.wav', { bitrate: '128k' }],
      ],
      1,
    ),
  )('of %s with %o has the same samples, packet for packet', async (source: Source, request) => {
    const { one, parts, unjoined } = await bothWays(source, { format: 'opus', ...request });
    expect(unjoined).toEqual([]);
    const { bitrateKbps, ...said } = saidOf(parts);
    expect(said).toEqual({ ...saidOf(one), bitrateKbps: undefined });
    expect(bitrateKbps / one.output.bitrateKbps).toBeCloseTo(1, 2);
    await heard(parts.output.path);
    expect(await samplesOf(parts.output.path)).toBe(await samplesOf(one.output.path));

    const [pages, singlePages] = [await oggPagesOf(parts.output.path), await oggPagesOf(one.output.path)];
    expect(pages.map(({ sequence }) => sequence)).toEqual(pages.map((_, nth) => nth));
    expect(pages.map(({ crc }) => crc)).toEqual(pages.map(({ rightCrc }) => rightCrc));
    expect(pages.map(({ flags }) => flags & 6)).toEqual(
      pages.map((_, nth) => (nth === 0 ? 2 : nth === pages.length - 1 ? 4 : 0)),
    );
    expect(new Set(pages.map(({ serial }) => serial)).size).toBe(1);
    expect(pages.at(-1)?.granule).toBe(singlePages.at(-1)?.granule);
    const granules = pages.map(({ granule }) => granule);
    expect(granules).toEqual(granules.toSorted((a, b) => a - b));

    const [packets, single] = [opusPacketsOf(pages), opusPacketsOf(singlePages)];
    expect(packets.length).toBe(single.length);
    const same = packets.filter((packet, nth) => single[nth]?.equals(packet)).length;
    // The first part is the single run itself; after the splice libopus may weigh a packet by what it heard a minute ago.
    expect(same / packets.length).toBeGreaterThan(0.7);
  });

  it.runIf(currentRun === 'all')('of the same packets is the same file', async () => {
    const { one, parts } = await bothWays('silence.wav', { format: 'opus' });
    expect(await readFile(parts.output.path)).toEqual(await readFile(one.output.path));
  });
});

describe('parts', () => {
  it.each(rowsOfRun([3, 4], 0))('may be %i', async (count) => {
    const shape = { minPartSeconds: 6, overlapSeconds: 4 };
    const { one, parts, unjoined } = await bothWays('speech.wav', { format: 'mp3' }, count, shape);
    expect(unjoined).toEqual([]);
    expect(await heard(parts.output.path)).toBe(await heard(one.output.path));
  });

  it.runIf(currentRun === 'core')(
    'that never agree are thrown away, and one run makes the output',
    async () => {
      const tooShort = { minPartSeconds: 12, overlapSeconds: 0.3 };
      const { one, parts, unjoined } = await bothWays('noise.wav', { format: 'mp3' }, 2, tooShort);
      expect(unjoined).toEqual(['two parts never make the same packets']);
      expect(await readFile(parts.output.path)).toEqual(await readFile(one.output.path));
      expect(await leftovers()).toEqual([]);
    },
  );
});

/** Parts and folders that should have gone. */
async function leftovers(): Promise<string[]> {
  return (await readdir(folder.path)).filter((name) => name.startsWith('extract-') || name.startsWith('end'));
}

describe('an extraction in parts', () => {
  const { held, takeIdle } = cores(2);
  const start = async (options: Partial<OneOptions>) => {
    await copyFile(await sources['chords.wav'](), folder.at('chords.wav'));
    const parallel = { takeIdle, lengths };
    return extract(folder.at('chords.wav'), folder.at('end'), { format: 'mp3' }, { parallel, ...options });
  };

  it.runIf(currentRun === 'core')('that is cancelled leaves no process and no file', async () => {
    const abort = new AbortController();
    const reason = new Error('cancelled');
    const made = start({ signal: abort.signal, tools: realTimeTools });
    const cancelled = expect(made).rejects.toBe(reason);
    await until('both parts run', () => partsRunning() === 2);
    abort.abort(reason);
    await cancelled;
    expect(partsRunning()).toBe(0);
    expect(await leftovers()).toEqual([]);
    expect(held.now).toBe(0);
  });

  it.runIf(currentRun === 'core')('one of whose parts fails ends the others and fails with it', async () => {
    // The other goes on for longer than this test may take.
    const breaking =
      'for word; do case $word in *part-1) echo "Error while decoding: planted" >&2; exit 3;; *part-0) exec sleep 600;; esac; done; exec "$@"';
    const broken = startedBy(['/bin/sh', '-c', breaking, 'sh', ...tools.launcher]);
    await expect(start({ tools: broken })).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
    });
    expect(await leftovers()).toEqual([]);
    expect(held.now).toBe(0);
  });

  it.runIf(currentRun === 'core')('keeps the limits of one run', async () => {
    await expect(start({ maxOutputBytes: 500_000 })).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: 'the output would exceed the limit of 500000 bytes',
    });
    expect(await leftovers()).toEqual([]);
  });

  it.runIf(currentRun === 'core')('of a truncated file says that it is incomplete', async () => {
    const file = folder.at('truncated.mp4');
    await copyFile(await sources['chords.mp4'](), file);
    await truncate(file, Math.round((await readFile(file)).length * 0.4));
    const parallel = { takeIdle, lengths };
    await expect(extract(file, folder.at('end'), { format: 'mp3' }, { parallel })).rejects.toMatchObject({
      code: 'INVALID_VIDEO',
      details: expect.stringContaining('incomplete'),
    });
    expect(await leftovers()).toEqual([]);
  });
});

/** The tool itself, not the launchers before it. */
function partsRunning(): number {
  const tools = processesOver(folder.path).filter(({ words }) => basename(words[0] ?? '') === 'ffmpeg');
  return tools.filter(({ words }) => words.some((word) => /part-\d$/.test(word))).length;
}
