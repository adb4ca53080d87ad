/** The audit log (docs/operations.md "Audit"): who changed what with which key, and whose key was refused. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Json } from '../client.ts';
import { fetch } from '../http.ts';
import { ServiceHome, type Serving } from '../service.ts';
import { until } from '../until.ts';

const GATEWAY_KEY = 'the-gateway-key-of-these-tests';
const OTHER = `sp_aaaaaaaa_${'a'.repeat(40)}`;

let home: ServiceHome;
let serving: Serving;
let id = '';

beforeAll(async () => {
  // Whatever else is wanted of the log.
  home = await ServiceHome.make({ GATEWAY_API_KEY: GATEWAY_KEY, LOG_LEVEL: 'error' });
  serving = await home.serve();
  id = home.key.split('_')[1] ?? '';
});
afterAll(() => home.remove());

const recordsIn = (output: string): Json[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{"level"'))
    .map((line) => JSON.parse(line))
    .filter(({ audit }) => audit === true);

/** What was recorded of a request. */
function recordOf(requestId: string | null): Promise<Json> {
  return until(`a record of ${requestId}`, () =>
    recordsIn(serving.process.output()).find((record) => record.requestId === requestId),
  );
}

interface Ask {
  readonly key?: string;
  readonly body?: unknown;
}

async function ask(
  base: string,
  method: string,
  path: string,
  { key, body }: Ask = {},
): Promise<string | null> {
  const response = await fetch(base + path, {
    method,
    headers: {
      ...(key === undefined ? {} : { 'x-api-key': key, apikey: key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  await response.arrayBuffer();
  return response.headers.get('x-request-id');
}

/** What a record says besides when, and of which request. */
const said = ({ level: _, time: _time, msg: _msg, requestId: _id, ...record }: Json): Json => record;

describe('the API', () => {
  const api = (method: string, path: string, more?: Ask): Promise<string | null> =>
    ask(serving.api, method, path, more);

  it.each([
    ['a submission', 'POST', '/v1/extract', {}, 'POST /v1/extract', 400],
    ['an erasure', 'DELETE', '/v1/jobs/job_0123456789abcdef', undefined, 'DELETE /v1/jobs/:jobId', 404],
    ['a new secret', 'POST', '/v1/webhooks/secret', undefined, 'POST /v1/webhooks/secret', 200],
    ['a path that there is not', 'POST', '/v1/nothing', undefined, 'POST (none)', 404],
  ])('records %s', async (_what, method, path, body, route, outcome) => {
    const record = await recordOf(await api(method, path, { key: home.key, body }));
    expect(said(record)).toEqual({ audit: true, key: id, route, outcome, address: '127.0.0.1' });
    expect([record.level, record.msg]).toEqual([30, 'key used']);
  });

  it.each([
    ['one that nobody has', OTHER, 'aaaaaaaa'],
    ['one with another secret', () => `${home.key.slice(0, -1)}Z`, () => id],
    ['what is none', 'password123', undefined],
  ])('records a key that is refused: %s', async (_what, key, claimed) => {
    const given = typeof key === 'string' ? key : key();
    const record = await recordOf(await api('GET', '/v1/jobs', { key: given }));
    expect([record.level, record.msg]).toEqual([40, 'key refused']);
    const claims = typeof claimed === 'function' ? claimed() : claimed;
    expect(said(record)).toEqual({
      audit: true,
      ...(claims === undefined ? {} : { key: claims }),
      route: 'GET /v1/jobs',
      outcome: 401,
      address: '127.0.0.1',
    });
  });

  it('records a key that lacks the scope, also where it only reads', async () => {
    const made = home.run([
      process.execPath,
      'src/main.ts',
      'keys',
      'create',
      '--name',
      'w',
      '--scopes',
      'voice',
    ]);
    await made.exited;
    const key = /^sp_\S+/m.exec(made.output())?.[0] ?? '';
    const record = await recordOf(await api('GET', '/v1/jobs', { key }));
    expect(record).toMatchObject({ msg: 'key refused', key: key.split('_')[1], outcome: 403 });
  });

  it('records nothing of who reads, or has no key', async () => {
    const quiet = await Promise.all([
      api('GET', '/v1/jobs', { key: home.key }),
      api('GET', '/v1/jobs'),
      api('POST', '/v1/extract', { body: {} }),
      api('GET', '/health/live'),
    ]);
    // Records come in order, so these would be there when the next one is.
    await recordOf(await api('POST', '/v1/webhooks/secret', { key: home.key }));
    const known = recordsIn(serving.process.output()).map(({ requestId }) => requestId);
    expect(known.filter((requestId) => quiet.includes(requestId))).toEqual([]);
  });
});

describe('the gateway', () => {
  const gateway = (method: string, path: string, more?: Ask): Promise<string | null> =>
    ask(serving.gateway, method, path, more);

  it('records what its own key, the token of an instance and the two GETs that change something do', async () => {
    const made = await fetch(`${serving.gateway}/instance/create`, {
      method: 'POST',
      headers: { apikey: GATEWAY_KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ instanceName: 'office' }),
    });
    const { hash, instance } = (await made.json()) as Json;
    const key = `instance:${instance.instanceId}`;
    expect(said(await recordOf(made.headers.get('x-request-id')))).toEqual({
      audit: true,
      key: 'gateway',
      route: 'POST /instance/create',
      outcome: 201,
      address: '127.0.0.1',
    });
    const settings = await gateway('POST', '/settings/set/office', { key: hash, body: {} });
    expect(await recordOf(settings)).toMatchObject({
      msg: 'key used',
      key,
      route: 'POST /settings/set/:instance',
    });
    const connect = await gateway('GET', '/instance/connect/office', { key: hash });
    expect(await recordOf(connect)).toMatchObject({
      key,
      route: 'GET /instance/connect/:instance',
      outcome: 200,
    });
    const other = await gateway('GET', '/instance/connectionState/main', { key: hash });
    expect(await recordOf(other)).toMatchObject({ msg: 'key refused', key, outcome: 401 });
    await gateway('DELETE', '/instance/delete/office', { key: GATEWAY_KEY });
    await until('the token is recorded as made and as gone', () => {
      const events = recordsIn(serving.process.output()).filter((record) => record.key === key);
      return ['key created', 'key revoked'].every((event) => events.some(({ msg }) => msg === event));
    });
  });

  it('records refused keys and tokens without them, and nothing of who reads', async () => {
    const refused = await gateway('GET', '/instance/fetchInstances', { key: 'CANARY-wrong-key' });
    expect(said(await recordOf(refused))).toEqual({
      audit: true,
      route: 'GET (none)',
      outcome: 401,
      address: '127.0.0.1',
    });
    const read = await gateway('GET', '/instance/fetchInstances', { key: GATEWAY_KEY });
    await recordOf(await gateway('POST', '/inbox/api/session', { body: { code: 'CANARY-wrong-code' } }));
    const output = serving.process.output();
    expect(recordsIn(output).some(({ requestId }) => requestId === read)).toBe(false);
    expect(output).not.toContain('CANARY');
  });
});

describe('keys', () => {
  /** By the API, and their secrets. */
  const answered: string[] = [];

  it('that are made, rotated and revoked are recorded, by service and command line', async () => {
    expect(recordsIn(serving.process.output())).toContainEqual(
      expect.objectContaining({ msg: 'key created', key: id }),
    );
    const keys = async (...args: string[]): Promise<{ said: string; records: Json[] }> => {
      const run = home.run([process.execPath, 'src/main.ts', 'keys', ...args]);
      expect(await run.exited).toBe(0);
      return { said: run.output(), records: recordsIn(run.output()).map(({ msg, key }) => [msg, key]) };
    };
    const made = await keys('create', '--name', 'shop');
    const shop = /^sp_([a-z0-9]{8})_/m.exec(made.said)?.[1];
    expect(made.records).toEqual([['key created', shop]]);
    expect((await keys('rotate', shop ?? '')).records).toEqual([['key rotated', shop]]);
    expect((await keys('list')).records).toEqual([]);
    expect((await keys('revoke', shop ?? '')).records).toEqual([['key revoked', shop]]);
  });

  it('that a key makes, rotates and revokes are recorded with that key', async () => {
    const manage = async (method: string, path: string, body?: object): Promise<Json> => {
      const response = await fetch(`${serving.api}/v1/keys${path}`, {
        method,
        headers: { 'x-api-key': home.key, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const { data } = (await response.json()) as Json;
      if (data.key !== undefined) answered.push(data.key, data.key.split('_')[2]);
      const { msg, ...record } = await recordOf(response.headers.get('x-request-id'));
      return { data, record: [msg, said(record)] };
    };
    const { data, record } = await manage('POST', '', { name: 'by key', scopes: ['read'] });
    const of = { audit: true, key: data.id, by: id, address: '127.0.0.1' };
    expect(record).toEqual(['key created', of]);
    expect((await manage('POST', `/${data.id}/rotate`)).record).toEqual(['key rotated', of]);
    expect((await manage('DELETE', `/${data.id}`)).record).toEqual(['key revoked', of]);
  });

  it('never stand in the log themselves', () => {
    const output = serving.process.output();
    expect(answered).toHaveLength(4);
    expect(recordsIn(output).length).toBeGreaterThan(10);
    for (const secret of [
      home.key,
      home.key.split('_')[2] ?? '',
      GATEWAY_KEY,
      OTHER,
      'password123',
      ...answered,
    ]) {
      expect(output).not.toContain(secret);
    }
  });
});
