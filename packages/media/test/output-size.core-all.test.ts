/** What is claimed for an output holds what is made, and is not out of all proportion to it. */

import { OutputRequest } from 'soundpost-contract/output-request';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extractSeveral, noAbort, tools } from 'soundpost-testing/extracting';
import { mediaFolder } from 'soundpost-testing/sources';
import { beforeAll, expect, it } from 'vitest';
import { extractAudio } from '../src/extract.ts';
import { roomFor } from '../src/output-size.ts';
import { planAny, planOutput } from '../src/plan.ts';
import { type Probe, probe } from '../src/probe.ts';

const MIB = 1024 * 1024;
const HOUR = 3600;
const folder = mediaFolder();

/** Of music of 4 s. */
let input = '';
let probed: Probe;
beforeAll(async () => {
  input = await folder.source('music.wav');
  probed = await probe(tools, input, { signal: noAbort });
});

const roomOf = (request: object, maxAudioSeconds = HOUR): number =>
  roomFor(planOutput(OutputRequest.parse(request), probed), { ...probed, maxAudioSeconds });

const requests = rowsOfRun(
  [
    { format: 'mp3', quality: 'extreme' },
    { format: 'wav', sampleRate: 192_000 },
    { format: 'voice' },
    { format: 'aac', quality: 'low' },
    { format: 'm4a' },
    { format: 'flac', quality: 'extreme' },
    { format: 'ogg', quality: 'extreme' },
    { format: 'opus', bitrate: '256k' },
    { format: 'wav', start: 1, end: 2 },
  ],
  3,
);

it(`of ${requests.map(({ format }) => format).join(', ')}`, async () => {
  const wanted = requests.map((request, nth) => ({ request, path: folder.at(`output-${nth}`) }));
  const { files } = await extractSeveral(input, wanted);
  for (const [nth, request] of requests.entries()) {
    const { sizeBytes = 0 } = files[nth] ?? {};
    expect(roomOf(request)).toBeGreaterThanOrEqual(sizeBytes);
    expect(roomOf(request)).toBeLessThan(4 * sizeBytes + 2 * MIB);
  }
});

it.runIf(currentRun === 'core')('of a waveform is by its pixels', async () => {
  const plan = planAny({ name: 'peaks', format: 'waveform', pixelsPerSecond: 100 }, probed);
  const sound = planOutput(OutputRequest.parse({ format: 'mp3' }), probed);
  const path = folder.at('peaks.json');
  const { files } = await extractAudio({
    ...{ tools, input, probe: probed, signal: noAbort, maxAudioSeconds: HOUR },
    outputs: [
      { plan: sound, path: folder.at('beside') },
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
  () => {
    const once = roomOf({ format: 'flac', copy: 'never' });
    const pcm = (probed.durationSeconds ?? 0) * 2 * 48_000 * 3;
    expect(roomOf({ format: 'flac', normalize: true })).toBe(2 * once + pcm);
    expect(roomOf({ format: 'flac', copy: 'never' }, 1)).toBeLessThan(once);
  },
);

it.runIf(currentRun === 'core')(
  'of an output in parts is that of the parts as well, where it is long enough for any',
  () => {
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
