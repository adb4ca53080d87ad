import { until } from 'soundpost-testing/until';
import { Webhook } from 'standardwebhooks';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Hook, type Json, type Notification, useClips, useService } from './api-fixture.ts';

const SCHEDULE = [0, 0.3, 0.6, 0.9];

const clip = useClips('tone.mp4');
const service = useService({ environment: { WEBHOOK_SCHEDULE_SECONDS: SCHEDULE.join(',') } });

let tone = '';
beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

const secretOf = async (key = service().key): Promise<string> =>
  (await service().call('GET', '/v1/webhooks/secret', { key })).body.data.secret;
const isVerified = (secret: string, { text, headers }: Notification): boolean => {
  try {
    new Webhook(secret).verify(text, { ...headers });
    return true;
  } catch {
    return false;
  }
};

/** A job that ends at once: its source is missing. */
const submit = (hook: Hook, key = service().key): Promise<string> =>
  service().submit(
    {
      source: { type: 'url', url: `http://127.0.0.1:${service().outside.port}/missing.mp4` },
      output: { format: 'mp3' },
      options: { webhook: hook.url },
    },
    { key },
  );
const webhookIs = (jobId: string, status: string): Promise<Json> =>
  until(`the webhook of ${jobId} is ${status}`, async () => {
    const { webhook } = await service().job(jobId);
    return webhook.status === status && webhook;
  });
const deliveriesOf = async (jobId: string): Promise<Json[]> =>
  (await service().call('GET', `/v1/jobs/${jobId}/deliveries`)).body.data.deliveries;

describe('D. Webhooks: signatures', () => {
  it('are those of Standard Webhooks 1.0.0', async () => {
    const hook = service().outside.hook('signed');
    await submit(hook);
    const [told] = await hook.got(1);
    const { headers, text } = told as Notification;
    expect(headers['content-type']).toBe('application/json');
    expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
    expect(Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp']))).toBeLessThan(60);
    const secret = await secretOf();
    expect(secret).toMatch(/^whsec_/);
    expect(Buffer.from(secret.slice(6), 'base64').length).toBeGreaterThanOrEqual(24);
    expect(isVerified(secret, told as Notification)).toBe(true);
    expect(isVerified(secret, { ...(told as Notification), text: `${text} ` })).toBe(false);
    expect(isVerified(await secretOf(await service().newKey()), told as Notification)).toBe(false);
  });

  it('are two for a day after a rotation: of the new secret and of the old one', async () => {
    const key = await service().newKey();
    const hook = service().outside.hook('rotated');
    const old = await secretOf(key);
    await submit(hook, key);
    const rotation = await service().call('POST', '/v1/webhooks/secret', { key });
    const { secret, replacedUntil } = rotation.body.data;
    expect(Math.round((Date.parse(replacedUntil) - Date.now()) / 3_600_000)).toBe(24);
    expect([rotation.status, rotation.headers['cache-control']]).toEqual([200, 'no-store']);
    expect(secret).not.toBe(old);
    expect(await secretOf(key)).toBe(secret);
    await hook.got(1);
    await submit(hook, key);
    const told = (await hook.got(2))[1] as Notification;
    expect(told.headers['webhook-signature']?.split(' ')).toHaveLength(2);
    expect([isVerified(secret, told), isVerified(old, told)]).toEqual([true, true]);
    // A second rotation leaves the first secret its own day.
    const { body } = await service().call('POST', '/v1/webhooks/secret', { key });
    await submit(hook, key);
    const last = (await hook.got(3))[2] as Notification;
    expect([body.data.secret, secret, old].map((one) => isVerified(one, last))).toEqual([true, true, true]);
  });
});

describe('D. Webhooks: attempts', () => {
  it('follow the schedule under one id and with one body until the receiver answers 2xx; each is kept', async () => {
    const hook = service().outside.hook('third', (nth) => ({ status: nth < 3 ? 500 : 200 }));
    const jobId = await submit(hook);
    const told = await hook.got(3);
    expect(await webhookIs(jobId, 'delivered')).toEqual({
      status: 'delivered',
      attempts: 3,
      lastError: null,
    });
    expect(new Set(told.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(told.map(({ text }) => text)).size).toBe(1);
    const endedMs = Date.parse((await service().job(jobId)).finishedAt);
    for (const [index, { atMs }] of told.entries()) {
      expect(atMs).toBeGreaterThanOrEqual(endedMs + (SCHEDULE[index] ?? 0) * 1000);
    }
    const secret = await secretOf();
    expect(told.map((one) => isVerified(secret, one))).toEqual([true, true, true]);
    const [delivery, ...more] = await deliveriesOf(jobId);
    expect(more).toEqual([]);
    const attempt = (httpStatus: number): object => ({
      at: expect.stringMatching(/Z$/),
      httpStatus,
      latencyMs: expect.any(Number),
      error: httpStatus === 200 ? null : `the receiver answered ${httpStatus}`,
    });
    expect(delivery).toEqual({
      deliveryId: told[0]?.headers['webhook-id'],
      kind: 'webhook',
      event: 'job.failed',
      status: 'delivered',
      nextAttemptAt: null,
      attempts: [attempt(500), attempt(500), attempt(200)],
      body: told[0]?.json,
    });
  });

  it('end with the schedule: WEBHOOK_FAILED on the job, which stays what it was', async () => {
    const hook = service().outside.hook('never', () => ({ status: 503 }));
    const jobId = await service().submit({
      source: { type: 'url', url: tone },
      output: { format: 'mp3' },
      options: { webhook: hook.url },
    });
    expect(await webhookIs(jobId, 'failed')).toEqual({
      status: 'failed',
      attempts: SCHEDULE.length,
      lastError: 'WEBHOOK_FAILED: the receiver answered 503',
    });
    expect(hook.received).toHaveLength(SCHEDULE.length);
    expect((await service().job(jobId)).status).toBe('completed');
    expect((await deliveriesOf(jobId))[0]).toMatchObject({
      status: 'failed',
      nextAttemptAt: null,
      endpoint: { state: 'failing', failedSince: expect.stringMatching(/Z$/) },
    });
    const well = service().outside.hook('well');
    const next = await submit(well);
    await webhookIs(next, 'delivered');
    expect((await deliveriesOf(next))[0]).not.toHaveProperty('endpoint');
  });

  it('a redirect is a failure, and nobody follows it', async () => {
    const target = service().outside.hook('target');
    const hook = service().outside.hook('moved', (nth) =>
      nth === 1 ? { status: 307, headers: { location: target.url } } : { status: 204 },
    );
    const jobId = await submit(hook);
    await hook.got(2);
    await webhookIs(jobId, 'delivered');
    expect(target.received).toEqual([]);
    expect((await deliveriesOf(jobId))[0].attempts[0]).toMatchObject({
      httpStatus: 307,
      error: expect.any(String),
    });
  });

  it('410 stops them', async () => {
    const hook = service().outside.hook('gone', () => ({ status: 410 }));
    const jobId = await submit(hook);
    expect(await webhookIs(jobId, 'failed')).toMatchObject({ attempts: 1 });
    // Long enough for all that the schedule would have brought.
    const other = service().outside.hook('other', () => ({ status: 500 }));
    await webhookIs(await submit(other), 'failed');
    expect(hook.received).toHaveLength(1);
  });

  it('wait for as long as Retry-After asks, and tell when the next one is', async () => {
    const hook = service().outside.hook('later', (nth) =>
      nth === 1 ? { status: 429, headers: { 'retry-after': '2' } } : { status: 204 },
    );
    const jobId = await submit(hook);
    const waiting = await until('the next attempt is known', async () => {
      const [delivery] = await deliveriesOf(jobId);
      return delivery?.attempts.length === 1 && delivery.nextAttemptAt !== null && delivery;
    });
    expect(waiting).toMatchObject({ status: 'pending', nextAttemptAt: expect.stringMatching(/Z$/) });
    expect((await service().job(jobId)).webhook).toMatchObject({
      status: 'pending',
      attempts: 1,
      lastError: 'the receiver answered 429',
    });
    const [first, second] = await hook.got(2);
    // Not before the receiver wants it, and not later than it came, however late that was.
    const nextMs = Date.parse(waiting.nextAttemptAt);
    expect(nextMs).toBeGreaterThanOrEqual((first?.atMs ?? 0) + 2000);
    expect(nextMs).toBeLessThanOrEqual(second?.atMs ?? 0);
  });

  it('a connection that breaks is a failure without a status', async () => {
    const url = service().outside.on('/broken', (_incoming, response) => response.destroy());
    const jobId = await submit({ url, received: [], got: async () => [] });
    await webhookIs(jobId, 'failed');
    const [{ attempts }] = await deliveriesOf(jobId);
    expect(attempts).toHaveLength(SCHEDULE.length);
    expect(attempts[0]).toMatchObject({ httpStatus: null, error: expect.stringMatching(/\S/) });
    expect(JSON.stringify(attempts)).not.toContain('127.0.0.1');
  });
});

describe('D. Webhooks: replay', () => {
  it('sends a delivered notification again at once, under its id', async () => {
    const hook = service().outside.hook('replayed');
    const jobId = await submit(hook);
    const [first] = await hook.got(1);
    await webhookIs(jobId, 'delivered');
    const [{ deliveryId }] = await deliveriesOf(jobId);
    const path = `/v1/jobs/${jobId}/deliveries/${deliveryId}/replay`;
    const { status, body } = await service().call('POST', path);
    expect(status).toBe(202);
    expect(body.data.deliveries).toHaveLength(1);
    const [, second] = await hook.got(2);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.text).toBe(first?.text);
    expect(isVerified(await secretOf(), second as Notification)).toBe(true);
    const delivery = await until('the replay is logged', async () => {
      const [one] = await deliveriesOf(jobId);
      return one.attempts.length === 2 && one.status === 'delivered' && one;
    });
    expect(delivery.deliveryId).toBe(deliveryId);
  });

  it('of a failed one begins the schedule anew, and may succeed', async () => {
    let mended = false;
    const hook = service().outside.hook('mended', () => ({ status: mended ? 204 : 500 }));
    const jobId = await submit(hook);
    await webhookIs(jobId, 'failed');
    mended = true;
    const [{ deliveryId }] = await deliveriesOf(jobId);
    await service().call('POST', `/v1/jobs/${jobId}/deliveries/${deliveryId}/replay`);
    expect(await webhookIs(jobId, 'delivered')).toEqual({
      status: 'delivered',
      attempts: SCHEDULE.length + 1,
      lastError: null,
    });
  });

  it('of all that were given up since a time', async () => {
    let mended = false;
    const hook = service().outside.hook('resent', () => ({ status: mended ? 204 : 500 }));
    const [key, other] = [await service().newKey(), await service().newKey()];
    const resend = (since: unknown, by = key): Promise<Answer> =>
      service().call('POST', '/v1/deliveries/resend', { key: by, json: { since } });
    const givenUp = async (by: string): Promise<string> => {
      const jobId = await submit(hook, by);
      await until('it is given up', async () => {
        const { body } = await service().call('GET', `/v1/jobs/${jobId}`, { key: by });
        return body.data.webhook.status === 'failed';
      });
      return jobId;
    };
    const before = await givenUp(key);
    const since = new Date().toISOString();
    const jobs = [await givenUp(key), await givenUp(key)];
    await givenUp(other);
    mended = true;
    const tried = hook.received.length;
    expect((await resend(since)).body.data).toEqual({ resent: 2 });
    const told = (await hook.got(tried + 2)).slice(tried).map(({ text }) => JSON.parse(text).jobId);
    expect(told.toSorted()).toEqual(jobs.toSorted());
    await until('both are delivered', async () => (await resend(since)).body.data.resent === 0);
    const { body } = await service().call('GET', `/v1/jobs/${before}`, { key });
    expect(body.data.webhook.status).toBe('failed');
    expect((await resend('yesterday')).body.error).toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('of those to one endpoint, whatever its query; endpoints are listed without it', async () => {
    let mended = false;
    const answer = () => ({ status: mended ? 204 : 500 });
    const [bad, other] = [
      service().outside.hook('ep-bad', answer),
      service().outside.hook('ep-other', answer),
    ];
    const good = service().outside.hook('ep-good');
    const key = await service().newKey();
    const list = async (query = '', by = key): Promise<Json> =>
      (await service().call('GET', `/v1/endpoints${query}`, { key: by })).body.data;
    expect(await list()).toEqual({ endpoints: [], nextCursor: null });
    const since = new Date().toISOString();
    const ids: string[] = [];
    for (const hook of [{ ...bad, url: `${bad.url}?token=secret` }, other, good]) {
      ids.push(await submit(hook, key));
    }
    await until('two are given up', async () => {
      const jobs = await Promise.all(ids.map((id) => service().job(id, { key })));
      return jobs.filter(({ webhook }) => webhook.status === 'failed').length === 2;
    });
    await good.got(1);
    const { endpoints } = await until('nothing is pending', async () => {
      const page = await list();
      return page.endpoints.every(({ pending }: Json) => pending === 0) && page;
    });
    const shown = (url: string, state: string, lastAnswer: number): Json => ({
      ...{ endpoint: url, state, lastAnswer, pending: 0, lastAt: expect.stringMatching(/Z$/) },
      failures: state === 'ok' ? 0 : expect.any(Number),
      failedSince: state === 'ok' ? null : expect.stringMatching(/Z$/),
    });
    expect(endpoints).toHaveLength(3);
    expect(endpoints).toEqual(
      expect.arrayContaining([
        shown(bad.url, 'failing', 500),
        shown(other.url, 'failing', 500),
        shown(good.url, 'ok', 204),
      ]),
    );
    expect(endpoints).toEqual(
      endpoints.toSorted((one: Json, two: Json) => two.lastAt.localeCompare(one.lastAt)),
    );
    const first = await list('?limit=2');
    const second = await list(`?limit=2&cursor=${first.nextCursor}`);
    expect([...first.endpoints, ...second.endpoints]).toEqual(endpoints);
    expect(second.nextCursor).toBeNull();
    expect(await list('', await service().newKey())).toEqual({ endpoints: [], nextCursor: null });
    const posted = async (query: string, by = key): Promise<Json> =>
      (await service().call('GET', `/v1/deliveries?endpoint=${query}`, { key: by })).body;
    const [ofBad] = (await posted(`${bad.url}?token=other`)).data.deliveries;
    expect(ofBad).toMatchObject({
      jobId: ids[0],
      event: 'job.failed',
      status: 'failed',
      deliveryId: `${ids[0]}-webhook`,
    });
    expect(ofBad.attempts.at(-1)).toMatchObject({ httpStatus: 500 });
    const again = await submit(good, key);
    await until('both are listed, newest first, page by page', async () => {
      const { deliveries, nextCursor } = (await posted(`${good.url}&limit=1`)).data;
      if (deliveries[0]?.jobId !== again) return false;
      const { data } = await posted(`${good.url}&limit=1&cursor=${nextCursor}`);
      return data.deliveries[0].jobId === ids[2] && data.nextCursor === null;
    });
    expect((await posted(`${good.url}&status=failed`)).data.deliveries).toEqual([]);
    expect((await posted(bad.url, await service().newKey())).data.deliveries).toEqual([]);
    expect((await posted('bad')).error).toMatchObject({ code: 'INVALID_REQUEST' });
    mended = true;
    const resend = async (json: Json): Promise<Json> =>
      (await service().call('POST', '/v1/deliveries/resend', { key, json })).body;
    const tried = bad.received.length;
    expect((await resend({ since, endpoint: `${bad.url}?token=other` })).data).toEqual({ resent: 1 });
    await bad.got(tried + 1);
    expect((await resend({ since, endpoint: good.url })).data).toEqual({ resent: 0 });
    expect((await resend({ since, endpoint: 'bad' })).error).toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('of what is not there, or of another job, is 404', async () => {
    const hook = service().outside.hook('unreplayed');
    const [mine, another] = [await submit(hook), await submit(hook)];
    await hook.got(2);
    const [{ deliveryId }] = await deliveriesOf(another);
    const stranger = await service().newKey();
    const replay = (jobId: string, id: string, key = service().key): Promise<Answer> =>
      service().call('POST', `/v1/jobs/${jobId}/deliveries/${id}/replay`, { key });
    expect((await replay(mine, 'nothing')).body.error.code).toBe('NOT_FOUND');
    expect((await replay(mine, deliveryId)).body.error.code).toBe('NOT_FOUND');
    expect((await replay(another, deliveryId, stranger)).body.error.code).toBe('JOB_NOT_FOUND');
    expect(hook.received).toHaveLength(2);
  });
});

describe('D. Webhooks: POST /v1/webhooks/test', () => {
  const test = (json: unknown): Promise<Answer> => service().call('POST', '/v1/webhooks/test', { json });

  it('sends one signed webhook.test', async () => {
    const hook = service().outside.hook('tested', () => ({ status: 201 }));
    const { status, body } = await test({ url: hook.url });
    expect([status, body]).toEqual([
      200,
      { success: true, data: { status: 201, latencyMs: expect.any(Number) } },
    ]);
    expect(hook.received).toHaveLength(1);
    const [told] = hook.received;
    expect(told?.json).toEqual({ event: 'webhook.test', timestamp: expect.stringMatching(/Z$/) });
    expect(isVerified(await secretOf(), told as Notification)).toBe(true);
  });

  it.each([500, 302])('a receiver that answers %i is INVALID_WEBHOOK', async (answered) => {
    const hook = service().outside.hook(`answers${answered}`, () => ({ status: answered }));
    const { status, body } = await test({ url: hook.url });
    expect([status, body.error.code]).toEqual([400, 'INVALID_WEBHOOK']);
    expect(body.error.details).toContain(String(answered));
    expect(hook.received).toHaveLength(1);
  });

  it.each([
    ['this machine listens', 'http://127.0.0.1:9/hook', 'INVALID_WEBHOOK'],
    ['not public', 'https://10.0.0.1/hook', 'INVALID_WEBHOOK'],
    ['no address', 'hook', 'INVALID_WEBHOOK'],
  ])('an address where %s', async (_what, url, code) => {
    const { status, body } = await test({ url });
    expect([status, body.error.code]).toEqual([400, code]);
    expect(body.error.details).not.toMatch(/127|ECONN|10\.0/);
  });

  it.each([[{}], [{ url: 7 }], [{ url: 'https://media.example/', extra: 1 }]])(
    '%j is INVALID_REQUEST',
    async (json) => {
      const { status, body } = await test(json);
      expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    },
  );
});
