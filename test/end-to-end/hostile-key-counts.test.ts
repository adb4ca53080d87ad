/**
 * One key submits all of `hostile-attacks.ts`, as often as it may: what is refused, charged and
 * held back, by counts. Another key is served meanwhile. How fast: hostile-key-figures.long.
 */
import { until } from 'soundpost-testing/until';
import { beforeAll, expect, it } from 'vitest';
import { type Answer, useClips, useService } from '../api/api-fixture.ts';
import { amountOf } from '../api/metrics/samples.ts';
import { type Attack, attacksOf, eventFloods } from './hostile-attacks.ts';

/** As by default. */
const SUBMISSIONS_PER_MINUTE = 60;

const EVENTS_TOKEN = 'the-token-of-another-gateway';
/** Wrong tokens and signatures of an address that are answered 401. */
const WRONG_TOKENS = 30;

const clip = useClips('tone.mp4');
const service = useService({
  environment: {
    RATE_SUBMIT_PER_MINUTE: String(SUBMISSIONS_PER_MINUTE),
    RATE_READ_PER_MINUTE: '3600',
    UNFINISHED_PER_KEY: '100',
    TRANSCRIBER_URL: 'http://127.0.0.1:9/v1',
    GATEWAY_EVENTS_TOKEN: EVENTS_TOKEN,
    TRUST_PROXY: '1',
  },
});

const attacks = new Map<string, Attack>();
beforeAll(async () => {
  for (const [name, make] of Object.entries(attacksOf(0.02))) {
    const attack = await make();
    attacks.set(name, attack);
    for (const [path, body] of attack.bodies) service().outside.on(path, (_, response) => response.end(body));
  }
});

const origin = (): string => `http://127.0.0.1:${service().outside.port}`;
const submit = (key: string, { submission }: Attack): Promise<Answer> =>
  service().call('POST', '/v1/extract', { key, json: submission(origin()) });

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
  const others: string[] = [];
  let refused: Answer | undefined;
  while (refused === undefined) {
    const answer = await submit(hostile, small);
    if (answer.status === 202) others.push(answer.body.data.jobId);
    else refused = answer;
  }
  expect(refused.status).toBe(429);
  expect(jobs.size + others.length).toBeGreaterThanOrEqual(SUBMISSIONS_PER_MINUTE);

  const short = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const request = { source: { type: 'url', url: short }, output: { format: 'mp3' } };
  const served = service().ended(await service().submit(request, { key: other }), { key: other });
  const reads = await Promise.all(
    ['/v1/jobs', '/v1/jobs?q=tone', '/v1/usage'].map((path) => service().call('GET', path, { key: other })),
  );
  expect(reads.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await served).status).toBe('completed');

  const long = [...jobs].flatMap(([name, jobId]) => (attacks.get(name)?.ends === undefined ? [jobId] : []));
  for (const jobId of [...long, ...others]) {
    expect((await service().call('DELETE', `/v1/jobs/${jobId}`, { key: hostile })).status).toBe(200);
  }
  for (const [name, jobId] of jobs) {
    const { ends } = attacks.get(name) ?? {};
    if (ends === undefined) continue;
    const { error } = await service().ended(jobId, { key: hostile });
    expect(error, name).toMatchObject({ code: ends.code, details: expect.stringMatching(ends.details) });
  }
  await until(
    'nothing of it is left',
    async () =>
      (await service().call('GET', '/v1/usage', { key: hostile })).body.data.unfinishedJobs.used === 0,
  );
  // However many its outputs are, a job asks once for its source and for what describes that.
  const asked = service().outside.requests.filter((path) => !/\.m4s$|^\/none/.test(path));
  const again = asked.filter((path, at) => asked.indexOf(path) !== at);
  // The source of three attacks.
  expect(again.filter((path) => path !== '/hours.flac')).toEqual([]);
  expect(again.length).toBeLessThan(3);
  const metrics = (await service().call('GET', '/metrics')).bytes.toString();
  const of = (key: string): { key: string } => ({ key: key.split('_')[1] ?? '' });
  expect(amountOf(metrics, 'soundpost_key_held_total', { ...of(hostile), limit: 'submissions' })).toBe(1);
  expect(amountOf(metrics, 'soundpost_key_processor_seconds_total', of(hostile))).toBeGreaterThan(0);
}, 240_000);

it.each(Object.entries(eventFloods(EVENTS_TOKEN)))('%s: what is wrong is counted', async (name, flood) => {
  const { statuses, body } = flood;
  const headers = { ...flood.headers, 'x-forwarded-for': `203.0.113.${name.length}` };
  const post = async (): Promise<number> =>
    (await service().call('POST', '/hooks/gateway', { key: null, body, headers })).status;
  const alike = statuses[0] === statuses[1] ? 1 : WRONG_TOKENS;
  for (let nth = 0; nth < alike; nth += 1) expect(await post()).toBe(statuses[0]);
  expect(await post()).toBe(statuses[1]);
  const { status } = await service().call('GET', '/v1/usage', { key: await service().newKey() });
  expect(status).toBe(200);
});
