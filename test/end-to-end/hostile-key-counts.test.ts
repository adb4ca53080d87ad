/**
 * One key submits all of `hostile-attacks.ts`, as often as it may: what is refused, charged and
 * held back, by counts. Another key is served meanwhile. How fast: hostile-key-figures.long.
 */
import { until } from 'soundpost-testing/until';
import { beforeAll, expect, it } from 'vitest';
import { type Answer, type Json, useClips, useService } from '../api/api-fixture.ts';
import { amountOf } from '../api/metrics/samples.ts';
import { type Attack, attacksOf } from './hostile-attacks.ts';

const SUBMISSIONS_PER_MINUTE = 60;
const PROCESSOR_SECONDS = 1_000;

const clip = useClips('tone.mp4');
const service = useService({
  environment: {
    RATE_SUBMIT_PER_MINUTE: String(SUBMISSIONS_PER_MINUTE),
    RATE_READ_PER_MINUTE: '3600',
    UNFINISHED_PER_KEY: '100',
    CPU_SECONDS_PER_MINUTE: String(PROCESSOR_SECONDS),
    TRANSCRIBER_URL: 'http://127.0.0.1:9/v1',
  },
});

const attacks = new Map<string, Attack>();
beforeAll(async () => {
  for (const [name, make] of Object.entries(attacksOf(0.1))) {
    const attack = await make();
    attacks.set(name, attack);
    for (const [path, body] of attack.bodies) service().outside.on(path, (_, response) => response.end(body));
  }
});

const origin = (): string => `http://127.0.0.1:${service().outside.port}`;
const submit = (key: string, { submission }: Attack): Promise<Answer> =>
  service().call('POST', '/v1/extract', { key, json: submission(origin()) });
const leftOf = async (key: string): Promise<Json> =>
  (await service().call('GET', '/v1/usage', { key })).body.data;

it('all attacks of one key end with their sentences, at its own cost, and another key is served', async () => {
  const [hostile, other] = [await service().newKey(), await service().newKey()];
  const jobs = new Map<string, string>();
  for (const [name, attack] of attacks) {
    const { status, body } = await submit(hostile, attack);
    if (attack.refused === undefined) {
      expect(status, name).toBe(202);
      jobs.set(name, body.data.jobId);
    } else {
      expect(status, name).toBeGreaterThanOrEqual(400);
      expect(JSON.stringify(body.error), name).toMatch(attack.refused);
    }
  }
  // The rest of the minute: jobs that end at once. One more is refused.
  const small = attacks.get('records as fat as they may be');
  if (small === undefined) throw new Error('there is no such attack');
  const statuses: number[] = [];
  while (!statuses.includes(429) && statuses.length < SUBMISSIONS_PER_MINUTE)
    statuses.push((await submit(hostile, small)).status);
  expect(jobs.size + statuses.filter((status) => status === 202).length).toBe(SUBMISSIONS_PER_MINUTE);

  const short = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const request = { source: { type: 'url', url: short }, output: { format: 'mp3' } };
  const served = service().ended(await service().submit(request, { key: other }), { key: other });
  const reads = await Promise.all(
    ['/v1/jobs', '/v1/jobs?q=tone', '/v1/usage', '/v1/events?limit=1']
      .slice(0, 3)
      .map((path) => service().call('GET', path, { key: other })),
  );
  expect(reads.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await served).status).toBe('completed');

  for (const [name, jobId] of jobs) {
    const { ends } = attacks.get(name) ?? {};
    if (ends === undefined) continue;
    const { error } = await service().ended(jobId, { key: hostile });
    expect(error, name).toMatchObject({ code: ends.code, details: expect.stringMatching(ends.details) });
  }
  const { processorSeconds } = await leftOf(hostile);
  expect(processorSeconds.remaining).toBeLessThan(PROCESSOR_SECONDS);
  const { bytes } = await service().call('GET', '/metrics');
  const held = { key: hostile.split('_')[1] ?? '', limit: 'submissions' };
  expect(amountOf(bytes.toString(), 'soundpost_key_held_total', held)).toBe(1);

  const running = [...jobs.values()];
  await service().call('POST', '/v1/jobs/bulk', { key: hostile, json: { action: 'delete', jobs: running } });
  await until('nothing of it is left', async () => (await leftOf(hostile)).unfinishedJobs.used === 0);
}, 240_000);
