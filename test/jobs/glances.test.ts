/** What a list reads of jobs: neither their requests, which may be large, nor more jobs than it needs. */
import { expect, it } from 'vitest';
import { newJobId, payloadOf, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();

async function figure(section: string, pattern: RegExp): Promise<number> {
  return Number(pattern.exec(await queue().redis.info(section))?.[1] ?? 0);
}
const sentBytes = () => figure('stats', /total_net_output_bytes:(\d+)/);
const reads = () => figure('commandstats', /cmdstat_hmget:calls=(\d+)/);

it('reads the names of fat jobs, a hundred at a time', async () => {
  const mentioned = Array.from({ length: 400 }, (_, nth) => `${nth}`.padStart(120, '1'));
  const voiceMessage = { instance: 'main', number: '1', mentioned };
  const jobs = Array.from({ length: 150 }, () => ({
    jobId: newJobId(),
    payload: payloadOf(TENANT, { filename: 'keynote', voiceMessage }),
  }));
  const submitting = queue().jobQueue({});
  for (let from = 0; from < jobs.length; from += 10) {
    await submitting.submit(TENANT, jobs.slice(from, from + 10));
  }
  // Else it may still confirm them, and read what it finds missing.
  await submitting.close();
  const ids = [...jobs.map(({ jobId }) => jobId), 'job_0123456789abcdef'];

  const [bytesBefore, readsBefore] = [await sentBytes(), await reads()];
  const seen: unknown[] = [];
  for await (const glance of queue().jobs.glances(ids)) seen.push(glance);
  const [bytes, asked] = [(await sentBytes()) - bytesBefore, (await reads()) - readsBefore];
  expect(seen).toEqual([
    ...jobs.map(({ jobId }) => ({
      ...{ jobId, status: 'queued', finishedAtMs: null },
      names: ['https://media.example/talk.mp4', 'keynote'],
    })),
    undefined,
  ]);
  expect(asked).toBe(151);
  // Their requests are 150 times 48 KB.
  expect(bytes).toBeLessThan(151 * 500);

  const before = await reads();
  for await (const first of queue().jobs.glances(ids)) {
    expect(first?.jobId).toBe(ids[0]);
    break;
  }
  expect((await reads()) - before).toBe(100);
});
