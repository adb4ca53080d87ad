// @module-tag quick-ffmpeg
/** Many clips of one source in one job: each as a job of its own makes it, from one decode that the cores share. */
import { readdir, readFile } from 'node:fs/promises';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { extract, extractSeveral, startedBy } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Extraction } from '../../src/extract.ts';
import { dealOut } from '../../src/parallel/render.ts';
import type { Rendition } from '../../src/rendition.ts';
import { cores } from './cores.ts';

const folder = mediaFolder();
const SECONDS = 40;
const RATE = 16_000;

/** Two lossless tracks, no two seconds alike: one with a late beginning and a gap from 12 to 15, one without. */
function source(): Promise<string> {
  const sound = (seed: number) =>
    `aevalsrc='0.2*sin(2*PI*(300+20*floor(t))*t)+0.05*random(${seed})|0.1*random(${seed + 1})':s=${RATE}:d=${SECONDS}`;
  const gap = "atrim=start=1.5,aselect='not(between(t,12,15))'";
  return cachedMedia('late-gap-and-whole.mkv', [
    ...['-f', 'lavfi', '-i', sound(0), '-f', 'lavfi', '-i', sound(2)],
    ...['-map', '0', '-map', '1', '-filter:a:0', gap, '-c:a', 'flac'],
  ]);
}

const requests: readonly Record<string, unknown>[] = [
  { format: 'wav', start: 8, end: 20 },
  { format: 'wav', start: 30 },
  { format: 'flac', start: 14, end: 16 },
  { format: 'mp3', start: 10, end: 13 },
  { format: 'wav', start: 0.02, end: 5 },
  { format: 'wav', start: 14, end: 22, timeline: 'audio' },
  { format: 'opus' },
  { format: 'wav', track: 1, start: 16.1234, end: 18 },
  { format: 'mp3', start: 21, end: 27, normalize: true },
  { format: 'wav', start: 9, end: 17, timeline: 'audio', trimSilence: true },
  { format: 'm4a', start: 8, end: 20 },
  { format: 'voice', start: 11, end: 14 },
  { format: 'wav', start: 3, end: 12.5, channels: 1 },
];

describe.each(byRun({ core: [2], all: [1, 3] }))('of clips over %i cores', (count) => {
  let made: Extraction;
  beforeAll(async () => {
    const wanted = requests.map((request, nth) => ({ request, path: folder.at(`${nth}`) }));
    made = await extractSeveral(await source(), wanted, { parallel: cores(count) });
  });

  it.each(requests.map((request, nth) => ({ request, nth })))(
    '$request is as a job of its own makes it',
    async ({ request, nth }) => {
      const alone = await extract(await source(), folder.at('alone'), request);
      // Packets of PCM are of any length, and only a whole track is counted to its end.
      const told = (file: typeof alone.output | undefined) =>
        file && { ...file, path: null, packets: null, sourceSeconds: null };
      expect(told(made.files[nth])).toEqual(told(alone.output));
      expect((await readFile(folder.at(`${nth}`))).equals(await readFile(alone.output.path))).toBe(true);
    },
  );

  it('silence and the end are counted of each', () => {
    expect(made.sourceSeconds).toBeCloseTo(SECONDS, 1);
    // The gap's edges are those of packets of 64 ms.
    for (const [nth, seconds] of [3, 0, 1, 1, 1.5, 0, 4.5].entries()) {
      expect(Math.abs((made.files[nth]?.filledSeconds ?? 0) - seconds), `${nth}`).toBeLessThan(0.1);
    }
  });
});

/** Decoded samples of each run that decoded the source, by its own statistics. */
async function decodes(log: string): Promise<number[]> {
  const names = (await readdir(folder.path)).filter((name) => name.startsWith(`${log}.`));
  const logs = await Promise.all(names.map((name) => readFile(folder.at(name), 'utf8')));
  return logs
    .flatMap(
      (text) => text.match(/Input stream #0:\d+ \(audio\): .*frames decoded.*\((\d+) samples\)/)?.[1] ?? [],
    )
    .map(Number)
    .toSorted((one, other) => one - other);
}

it.runIf(currentRun === 'core')(
  '32 clips take one decode on one core, and one and a half on two',
  async () => {
    const input = await source();
    const clips = Array.from({ length: 32 }, (_, nth) => {
      // The order in which they are asked for does not matter.
      const start = ((nth * 7) % 32) * (SECONDS / 32);
      return {
        path: folder.at(`clip${nth}.wav`),
        request: { format: 'wav', track: 1, start, end: start + SECONDS / 32 },
      };
    });
    for (const [count, whole] of [
      [1, [1]],
      [2, [0.5, 1]],
    ] as const) {
      const log = `log${count}`;
      const logging = '"$@" 2>"$0.$$"; code=$?; cat "$0.$$" >&2; exit $code';
      const tools = startedBy(['/bin/sh', '-c', logging, folder.at(log)]);
      await extractSeveral(input, clips, { tools, parallel: cores(count) });
      const shares = (await decodes(log)).map((samples) => samples / (SECONDS * RATE));
      expect(shares).toHaveLength(whole.length);
      for (const [nth, share] of shares.entries()) expect(share).toBeCloseTo(whole[nth] ?? 0, 0.8);
    }
  },
);

const rendition = (seconds: number, startSeconds: number, samplesPerPixel: number | null = null) =>
  ({
    mode: 'encode',
    plan: {
      track: { streamIndex: 0 },
      trim: startSeconds === 0 ? null : { startSeconds, endSeconds: startSeconds + seconds },
      expectedSeconds: seconds,
      samplesPerPixel,
    },
  }) as Rendition;

it('cores get outputs that follow each other, of about as many seconds each', () => {
  const minute = Array.from({ length: 12 }, (_, nth) => rendition(60, 660 - 60 * nth));
  const runs = dealOut(minute, 3)[0] ?? [];
  expect(runs.map((run) => run.map(({ plan }) => plan.trim?.startSeconds ?? 0))).toEqual([
    [0, 60, 120, 180],
    [240, 300, 360, 420],
    [480, 540, 600, 660],
  ]);
  const whole = rendition(720, 0);
  expect(dealOut([whole, ...minute], 2)[0]?.[0]).toEqual([whole]);
});

it('waveforms of the same sound share a run, those of other sound get a round of their own', () => {
  const [mp3, one, same, other] = [0, 100, 50, 100].map((pixel, nth) =>
    rendition(60, nth === 3 ? 5 : 0, pixel || null),
  );
  if (!mp3 || !one || !same || !other) throw new Error('four were made');
  expect(dealOut([mp3, one, other, same], 2)).toEqual([[[mp3], [one, same]], [[other]]]);
});
