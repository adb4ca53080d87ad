/** A bucket that is away for 10 s, 10 min or 3 h while 50 files are to be put there, a thousand times as fast as in life. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Environment } from 'soundpost-kit/settings/environment';
import { Bucket } from 'soundpost-testing/bucket';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { type Json, useClips, useService } from './api-fixture.ts';

const SPEED = 1000;
const { WEBHOOK_SCHEDULE_SECONDS: schedule } = Environment.parse({});
const clip = useClips('tone.mp4');
const service = useService({
  environment: { WEBHOOK_SCHEDULE_SECONDS: schedule.map((seconds) => seconds / SPEED).join(',') },
});
const JOBS = 2;
const FILES = 25;

it.each([
  ['10 s', 10],
  ['10 min', 600],
  ['3 h', 3 * 60 * 60],
])(
  'away for %s: 50 of 50 are put whole, and only a lost answer has one put again',
  { timeout: 240_000 },
  async (_, seconds) => {
    const bucket = new Bucket();
    let isAway = true;
    const lost = new Set<string>();
    bucket.answer = (_nth, { url = '', socket }) => {
      if (isAway) {
        socket.resetAndDestroy();
        return { status: 503 };
      }
      // The file is there; its answer is not.
      if (url.includes('n3') && !lost.has(url)) {
        lost.add(url);
        socket.resetAndDestroy();
      }
      return { status: 200 };
    };
    const source = { type: 'url', url: await service().outside.file('tone.mp4', clip('tone.mp4')) };
    const jobIds = await Promise.all(
      Array.from({ length: JOBS }, async (_one, job) => {
        const base = `/away-${seconds}/${job}`;
        const outputs = Array.from({ length: FILES }, (_output, nth) => ({
          ...{ name: `n${nth}`, format: 'waveform' },
          destination: { url: service().outside.on(`${base}/n${nth}`, bucket.handle) },
        }));
        const audio = { name: 'audio', format: 'mp3' };
        return service().submit({ source, outputs: [audio, ...outputs] });
      }),
    );
    await until('all are refused', () => bucket.begun >= JOBS * FILES, 120_000);
    await sleep((seconds / SPEED) * 1000);
    isAway = false;
    const putOf = async (jobId: string): Promise<string[]> =>
      (await service().job(jobId)).outputFiles.slice(1).map(({ destination }: Json) => destination.status);
    for (const jobId of jobIds) {
      await until(
        `${jobId} is put`,
        async () => (await putOf(jobId)).every((status) => status === 'completed'),
        120_000,
      );
    }
    const whole = bucket.puts.filter(({ isWhole, status }) => isWhole && status === 200);
    expect(bucket.objects.size).toBe(JOBS * FILES);
    expect(lost.size).toBe(JOBS);
    expect(whole).toHaveLength(JOBS * FILES + lost.size);
  },
);
