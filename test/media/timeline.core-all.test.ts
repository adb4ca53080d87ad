/**
 * The source's clock (decisions A2a): a tone that sounds in the source's second n sounds in the output's second n, counted in decoded
 * samples, whatever the container, trimmed or not, copied or not.
 */
import { describe, expect, it } from 'vitest';
import { rowsOfRun } from '../by-run.ts';
import { extract } from './extracting.ts';
import { decodedSamples, decodedSeconds, ffmpeg } from './oracle.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();
const RATE = 8000;
/** Second n of a source holds this tone, so that each second can be told from the others. */
const toneOf = (second: number): number => 400 + 200 * second;
const SOUND = `aevalsrc='0.5*sin(2*PI*(400+200*floor(t))*t)':d=12:s=48000`;
const PICTURES = 'testsrc2=s=64x64:r=10:d=12';

const codecs: Readonly<Record<string, readonly string[]>> = {
  mp4: ['-c:v', 'libx264', '-bf', '2', '-preset', 'ultrafast', '-c:a', 'aac'],
  mov: ['-c:v', 'mpeg4', '-c:a', 'aac'],
  mkv: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
  webm: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-c:a', 'libopus'],
  ts: ['-c:v', 'mpeg2video', '-c:a', 'mp2'],
  avi: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
  wmv: ['-c:v', 'wmv2', '-c:a', 'wmav2'],
  flv: ['-c:v', 'flv', '-ar', '44100', '-c:a', 'aac'],
};

interface Damage {
  /** Of the sound, before it is encoded. */
  readonly filter?: string;
  /** Seconds that the sound is late. */
  readonly late?: number;
  /** Seconds of the source that hold sound. */
  readonly sounds: (second: number) => boolean;
}

const damages: Readonly<Record<string, Damage>> = {
  whole: { sounds: () => true },
  gap: { filter: "aselect='not(between(t,3,7))'", sounds: (n) => n < 3 || n >= 7 },
  late: { late: 3, filter: 'atrim=start=3', sounds: (n) => n >= 3 },
  short: { filter: 'atrim=end=8', sounds: (n) => n < 8 },
};

const formatNames = ['wav', 'm4a', 'aac', 'mp3', 'ogg', 'opus', 'flac'];

/** AVI has no timestamps: it cannot hold a gap or a late beginning. */
const cases = Object.keys(codecs).flatMap((container) =>
  Object.keys(damages)
    .filter((damage) => container !== 'avi' || damage === 'whole' || damage === 'short')
    .map((damage) => ({
      container,
      damage,
      // In the core each format on a gap, and each damage copied (m4a of an MP4) and encoded.
      formats: rowsOfRun(
        formatNames,
        (format) => container === 'mp4' && (damage === 'gap' || format === 'm4a' || format === 'opus'),
      ),
    })),
);

const made = new Map<string, Promise<string>>();

function source(container: string, damage: string): Promise<string> {
  const name = `${damage}.${container}`;
  const path = made.get(name) ?? make(container, damage, folder.at(name));
  made.set(name, path);
  return path;
}

async function make(container: string, damage: string, path: string): Promise<string> {
  const { filter = 'anull' } = damages[damage] ?? {};
  await ffmpeg(
    ...['-v', 'error', '-f', 'lavfi', '-i', PICTURES, '-f', 'lavfi', '-i', SOUND],
    ...['-filter:a', filter, ...(codecs[container] ?? []), path],
  );
  return path;
}

/** The loudest of the tones in the middle of each second, null where it is silent. */
async function tonesOf(path: string): Promise<(number | null)[]> {
  const samples = await decodedSamples(path, RATE);
  const seconds = Math.floor(samples.length / RATE + 0.5);
  return Array.from({ length: seconds }, (_, second) => {
    const middle = samples.subarray((second + 0.25) * RATE, (second + 0.75) * RATE);
    const powers = Array.from({ length: 12 }, (_, n) => powerAt(middle, toneOf(n)));
    const loudest = powers.indexOf(Math.max(...powers));
    return (powers[loudest] ?? 0) > 1e-3 ? loudest : null;
  });
}

/** Goertzel's algorithm. */
function powerAt(samples: Float32Array, hertz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hertz) / RATE);
  let [before, last] = [0, 0];
  for (const sample of samples) [before, last] = [last, sample + coefficient * last - before];
  return (before ** 2 + last ** 2 - coefficient * before * last) / samples.length ** 2;
}

const expected = (damage: string, from: number, to: number): (number | null)[] =>
  Array.from({ length: to - from }, (_, index) =>
    damages[damage]?.sounds(from + index) ? from + index : null,
  );

describe('second n of the output is second n of the source', () => {
  describe.each(cases.filter(({ formats }) => formats.length > 0))('$container, $damage', (row) => {
    const { container, damage } = row;
    it.each(row.formats)('as %s', async (format) => {
      const input = await source(container, damage);
      const end = damage === 'short' ? 8 : 12;
      const { output, sourceSeconds } = await extract(input, folder.at(`out.${format}`), { format });
      expect(await tonesOf(output.path)).toEqual(expected(damage, 0, end));
      expect(Math.abs(sourceSeconds - end)).toBeLessThan(0.1);
      expect(Math.abs((await decodedSeconds(output.path)) - output.durationSeconds)).toBeLessThan(0.05);

      const cut = await extract(input, folder.at(`cut.${format}`), { format, start: 2, end: 7 });
      expect(await tonesOf(cut.output.path)).toEqual(expected(damage, 2, 7));
      expect(Math.abs(cut.sourceSeconds - sourceSeconds)).toBeLessThan(0.05);
    });
  });
});
