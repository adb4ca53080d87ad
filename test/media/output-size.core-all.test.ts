/** What is claimed for an output holds what is made, and is not out of all proportion to it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OutputRequest } from '../../src/contract/output-request.ts';
import { extractAudio } from '../../src/media/extract.ts';
import { roomFor } from '../../src/media/output-size.ts';
import { planAny, planOutput } from '../../src/media/plan.ts';
import { probe } from '../../src/media/probe.ts';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { extract, noAbort, tools } from './extracting.ts';
import { mediaFolder } from './sources.ts';

const MIB = 1024 * 1024;
const HOUR = 3600;
const folder = mediaFolder();
let place = '';
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'soundpost-size-'));
});
afterAll(() => rm(place, { recursive: true, force: true }));

async function roomOf(input: string, request: object, maxAudioSeconds = HOUR): Promise<number> {
  const probed = await probe(tools, input, { signal: noAbort });
  return roomFor(planOutput(OutputRequest.parse(request), probed), { ...probed, maxAudioSeconds });
}

it.each(
  rowsOfRun(
    [
      { format: 'mp3', quality: 'extreme' },
      { format: 'aac', quality: 'low' },
      { format: 'm4a' },
      { format: 'flac', quality: 'extreme' },
      { format: 'wav', sampleRate: 192_000 },
      { format: 'ogg', quality: 'extreme' },
      { format: 'opus', bitrate: '256k' },
      { format: 'voice' },
      { format: 'wav', start: 1, end: 2 },
    ],
    3,
  ),
)('of %o', async (request) => {
  for (const name of ['speech.mp4', 'music.wav'] as const) {
    const input = await folder.source(name);
    const room = await roomOf(input, request);
    const { output } = await extract(input, join(place, 'output'), request);
    expect(room).toBeGreaterThanOrEqual(output.sizeBytes);
    expect(room).toBeLessThan(4 * output.sizeBytes + 2 * MIB);
  }
});

it.runIf(currentRun === 'core')('of a waveform is by its pixels', async () => {
  const input = await folder.source('music.wav');
  const probed = await probe(tools, input, { signal: noAbort });
  const plan = planAny({ name: 'peaks', format: 'waveform', pixelsPerSecond: 100 }, probed);
  const sound = planOutput(OutputRequest.parse({ format: 'mp3' }), probed);
  const path = join(place, 'peaks.json');
  const { files } = await extractAudio({
    ...{ tools, input, probe: probed, signal: noAbort, maxAudioSeconds: HOUR },
    outputs: [
      { plan: sound, path: join(place, 'beside') },
      { plan, path },
    ],
  });
  const sizeBytes = files[1]?.sizeBytes ?? 0;
  const room = roomFor(plan, { ...probed, maxAudioSeconds: HOUR });
  expect(room).toBeGreaterThanOrEqual(sizeBytes);
  expect(room).toBeLessThan(2 * sizeBytes + 2 * MIB);
});

it.runIf(currentRun === 'core')(
  'of a loudness is that of two files and of the PCM on the way, and never that of more audio than is accepted',
  async () => {
    const input = await folder.source('music.wav');
    const once = await roomOf(input, { format: 'flac', copy: 'never' });
    const { durationSeconds } = await probe(tools, input, { signal: noAbort });
    const pcm = (durationSeconds ?? 0) * 2 * 48_000 * 3;
    expect(await roomOf(input, { format: 'flac', normalize: true })).toBe(2 * once + pcm);
    expect(await roomOf(input, { format: 'flac', copy: 'never' }, 1)).toBeLessThan(once);
  },
);

it.runIf(currentRun === 'core')(
  'of an output in parts is that of the parts as well, where it is long enough for any',
  async () => {
    const input = await folder.source('music.wav');
    const probed = await probe(tools, input, { signal: noAbort });
    const roomOfLong = (request: object, mayUseParts: boolean) => {
      const plan = { ...planOutput(OutputRequest.parse(request), probed), expectedSeconds: HOUR };
      return roomFor(plan, { ...probed, maxAudioSeconds: HOUR, mayUseParts });
    };
    for (const format of ['mp3', 'opus']) {
      expect(roomOfLong({ format }, true)).toBeGreaterThanOrEqual(2.2 * roomOfLong({ format }, false) - 1);
    }
    expect(roomOfLong({ format: 'm4a' }, true)).toBe(roomOfLong({ format: 'm4a' }, false));
  },
);
