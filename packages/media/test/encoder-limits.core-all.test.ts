/** The table of bitrates, asked of the encoders: at each end of a range, and one step past it. */
import { readFile } from 'node:fs/promises';
import { bitrateRangeOf, formats, nearestBitrate, takenBitrates } from 'soundpost-contract/formats';
import { currentRun } from 'soundpost-testing/by-run';
import { ffmpeg } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();

const noise = (sampleRate: number, channels: number, seconds: number) => [
  ...['-f', 'lavfi', '-i', `anoisesrc=d=${seconds}:r=${sampleRate}:a=0.5`, '-ac', String(channels)],
];

async function encode(encoder: string, sampleRate: number, channels: number, kbps: number, seconds = 0.1) {
  const args = [...noise(sampleRate, channels, seconds), '-c:a', encoder, '-b:a', `${kbps}k`];
  try {
    return { taken: true, stderr: (await ffmpeg('-v', 'warning', ...args, '-f', 'null', '-')).stderr };
  } catch {
    return { taken: false, stderr: '' };
  }
}

describe.runIf(currentRun === 'all').each([1, 2])('with %i channel(s)', (channels) => {
  const rangeOf = (codec: 'vorbis' | 'opus' | 'aac', rate: number) => {
    const taken = takenBitrates(codec, channels, rate);
    if (taken === null || 'only' in taken) throw new Error('a range was expected');
    return taken;
  };

  it.each([8000, 11_025, 16_000, 22_050, 32_000, 44_100])(
    'libvorbis at %i Hz fails past its range',
    async (rate) => {
      const { min, max } = rangeOf('vorbis', rate);
      const results = await Promise.all(
        [min - 1, min, max, max + 1].map((kbps) => encode('libvorbis', rate, channels, kbps)),
      );
      expect(results.map(({ taken }) => taken)).toEqual([false, true, true, false]);
    },
  );

  it('libopus fails past its range', async () => {
    const { min, max } = rangeOf('opus', 48_000);
    expect((await encode('libopus', 48_000, channels, min)).taken).toBe(true);
    expect((await encode('libopus', 48_000, channels, max)).taken).toBe(true);
    // For stereo the format ends (RFC 6716) where libopus itself would go on to 512k.
    expect((await encode('libopus', 48_000, channels, channels * 256 + 1)).taken).toBe(false);
  });

  it.each([8000, 22_050, 44_100, 48_000])('aac at %i Hz clamps past its range', async (rate) => {
    const { max } = rangeOf('aac', rate);
    expect((await encode('aac', rate, channels, max)).stderr).not.toContain('Too many bits');
    expect((await encode('aac', rate, channels, max + 1)).stderr).toContain('Too many bits');
  });

  it.each([8000, 12_000, 16_000, 24_000, 32_000, 48_000])(
    'LAME at %i Hz writes the bitrates of its list, and no others',
    async (rate) => {
      const taken = takenBitrates('mp3', channels, rate);
      if (taken === null || !('only' in taken)) throw new Error('a list was expected');
      const wanted = [...taken.only, 320];
      const files = wanted.map((_, index) => folder.at(`${channels}-${rate}-${index}.mp3`));
      // One run for all of them.
      await ffmpeg(
        ...['-v', 'error', ...noise(rate, channels, 2)],
        ...wanted.flatMap((kbps, index) => [
          ...['-c:a', 'libmp3lame', '-b:a', `${kbps}k`, '-write_xing', '0', '-id3v2_version', '0'],
          files[index] ?? '',
        ]),
      );
      const measured = await Promise.all(
        files.map(async (file) => bitrateOfFirstFrame(await readFile(file))),
      );
      expect(measured).toEqual([...taken.only, Math.max(...taken.only)]);
    },
  );
});

/** ISO/IEC 11172-3 and 13818-3 layer III. */
function bitrateOfFirstFrame(mp3: Buffer): number {
  const mpeg1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
  const mpeg2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
  return ((mp3.readUInt8(1) & 0x08) !== 0 ? mpeg1 : mpeg2)[mp3.readUInt8(2) >> 4] ?? 0;
}

describe.runIf(currentRun === 'core')('the nearest bitrate', () => {
  it.each([
    [{ min: 32, max: 240 }, 320, 240],
    [{ min: 45, max: 500 }, 32, 45],
    [{ min: 45, max: 500 }, 99, 99],
    [{ only: [32, 64, 96] }, 320, 96],
    [{ only: [32, 64, 96] }, 50, 64],
    [{ only: [32, 64, 96] }, 48, 64],
  ])('in %o to %i is %i', (taken, wanted, nearest) => {
    expect(nearestBitrate(taken, wanted)).toBe(nearest);
  });

  it('leaves every quality of every format within its range', () => {
    const cases = Object.values(formats).flatMap((format) =>
      format.quality === 'lossless'
        ? []
        : [1, 2].flatMap((channels) =>
            format.sampleRates.map((rate) => ({
              ...format,
              channels,
              rate,
              wanted: Object.values(format.quality),
            })),
          ),
    );
    expect(cases.length).toBeGreaterThan(50);
    for (const { codec, channels, rate, wanted } of cases) {
      const taken = takenBitrates(codec, channels, rate);
      const { min, max } = bitrateRangeOf(taken ?? { only: [] });
      for (const kbps of wanted) {
        expect(nearestBitrate(taken ?? { only: [] }, kbps)).toBeGreaterThanOrEqual(min);
        expect(nearestBitrate(taken ?? { only: [] }, kbps)).toBeLessThanOrEqual(max);
      }
    }
  });
});

it.runIf(currentRun === 'all').each([8000, 12_345, 96_000, 192_000])(
  'FLAC and WAV take %i Hz',
  async (rate) => {
    for (const muxer of ['flac', 'wav']) {
      const { stdout } = await ffmpeg('-v', 'error', ...noise(rate, 1, 0.1), '-f', muxer, '-');
      expect(stdout.length).toBeGreaterThan(0);
    }
  },
);
