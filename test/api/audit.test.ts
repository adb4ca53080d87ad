/** The audit log (docs/operations/security.md "Audit"): who changed what with which key, and whose key was refused. What the command line records: keys.test.ts. */

import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { type Answer, type Ask, GATEWAY_API_KEY, type Json, useService } from './api-fixture.ts';

const OTHER = `sp_aaaaaaaa_${'a'.repeat(40)}`;

const lines: string[] = [];
const service = useService({
  parts: ['gateway'],
  // Whatever else is wanted of the log.
  environment: { LOG_LEVEL: 'error' },
  log: (line) => lines.push(line),
});
const idOf = (key: string): string => key.split('_')[1] ?? '';

const records = (): Json[] => lines.map((line) => JSON.parse(line)).filter(({ audit }) => audit === true);

/** What was recorded of a request. */
function recordOf({ headers }: Answer): Promise<Json> {
  const requestId = headers['x-request-id'];
  return until(`a record of ${requestId}`, () => records().find((record) => record.requestId === requestId));
}

/** What a record says besides when, and of which request. */
const said = ({ level: _, time: _time, msg: _msg, requestId: _id, ...record }: Json): Json => record;

describe('the API', () => {
  const api = (method: string, path: string, ask?: Ask): Promise<Answer> => service().call(method, path, ask);

  it.each([
    ['a submission', 'POST', '/v1/extract', {}, 'POST /v1/extract', 400],
    ['an erasure', 'DELETE', '/v1/jobs/job_0123456789abcdef', undefined, 'DELETE /v1/jobs/:jobId', 404],
    ['a new secret', 'POST', '/v1/webhooks/secret', undefined, 'POST /v1/webhooks/secret', 200],
    ['a path that there is not', 'POST', '/v1/nothing', undefined, 'POST (none)', 404],
  ])('records %s', async (_what, method, path, json, route, outcome) => {
    const record = await recordOf(await api(method, path, { json }));
    const key = idOf(service().key);
    expect(said(record)).toEqual({ audit: true, key, route, outcome, address: '127.0.0.1' });
    expect([record.level, record.msg]).toEqual([30, 'key used']);
  });

  it.each([
    ['one that nobody has', () => OTHER, () => 'aaaaaaaa'],
    [
      'one with another secret',
      () => service().key.replace(/.$/, (last) => (last === 'Z' ? 'Y' : 'Z')),
      () => idOf(service().key),
    ],
    ['what is none', () => 'password123', () => undefined],
  ])('records a key that is refused: %s', async (_what, key, claimed) => {
    const record = await recordOf(await api('GET', '/v1/jobs', { key: key() }));
    expect([record.level, record.msg]).toEqual([40, 'key refused']);
    const claims = claimed();
    expect(said(record)).toEqual({
      audit: true,
      ...(claims === undefined ? {} : { key: claims }),
      route: 'GET /v1/jobs',
      outcome: 401,
      address: '127.0.0.1',
    });
  });

  it('records a key that lacks the scope, also where it only reads', async () => {
    const key = await service().newKey({ scopes: ['voice'] });
    const record = await recordOf(await api('GET', '/v1/jobs', { key }));
    expect(record).toMatchObject({ msg: 'key refused', key: idOf(key), outcome: 403 });
  });

  it('records nothing of who reads, or has no key', async () => {
    const quiet = await Promise.all([
      api('GET', '/v1/jobs'),
      api('GET', '/v1/jobs', { key: null }),
      api('POST', '/v1/extract', { key: null, json: {} }),
      api('GET', '/health/live', { key: null }),
    ]);
    // Records come in order, so these would be there when the next one is.
    await recordOf(await api('POST', '/v1/webhooks/secret'));
    const known = new Set(records().map(({ requestId }) => requestId));
    expect(quiet.filter(({ headers }) => known.has(headers['x-request-id']))).toEqual([]);
  });
});

describe('the gateway', () => {
  const gateway = (method: string, path: string, apikey: string, json?: unknown): Promise<Answer> =>
    service().call(method, `${service().gatewayUrl}${path}`, { key: null, headers: { apikey }, json });

  it('records what its own key, the token of an instance and the two GETs that change something do', async () => {
    const made = await gateway('POST', '/instance/create', GATEWAY_API_KEY, { instanceName: 'office' });
    const { hash, instance } = made.body;
    const key = `instance:${instance.instanceId}`;
    expect(said(await recordOf(made))).toEqual({
      audit: true,
      key: 'gateway',
      route: 'POST /instance/create',
      outcome: 201,
      address: '127.0.0.1',
    });
    const settings = await gateway('POST', '/settings/set/office', hash, {});
    expect(await recordOf(settings)).toMatchObject({
      msg: 'key used',
      key,
      route: 'POST /settings/set/:instance',
    });
    const connect = await gateway('GET', '/instance/connect/office', hash);
    expect(await recordOf(connect)).toMatchObject({
      key,
      route: 'GET /instance/connect/:instance',
      outcome: 200,
    });
    const other = await gateway('GET', '/instance/connectionState/main', hash);
    expect(await recordOf(other)).toMatchObject({ msg: 'key refused', key, outcome: 401 });
    await gateway('DELETE', '/instance/delete/office', GATEWAY_API_KEY);
    await until('the token is recorded as made and as gone', () => {
      const events = records().filter((record) => record.key === key);
      return ['key created', 'key revoked'].every((event) => events.some(({ msg }) => msg === event));
    });
  });

  it('records refused keys and tokens without them, and nothing of who reads', async () => {
    const refused = await gateway('GET', '/instance/fetchInstances', 'CANARY-wrong-key');
    expect(said(await recordOf(refused))).toEqual({
      audit: true,
      route: 'GET (none)',
      outcome: 401,
      address: '127.0.0.1',
    });
    const read = await gateway('GET', '/instance/fetchInstances', GATEWAY_API_KEY);
    await recordOf(await gateway('POST', '/inbox/api/session', '', { code: 'CANARY-wrong-code' }));
    expect(records().some(({ requestId }) => requestId === read.headers['x-request-id'])).toBe(false);
    expect(lines.join('')).not.toContain('CANARY');
  });
});

it('keys that a key makes, rotates and revokes are recorded with that key, and none stands in the log', async () => {
  const secrets: string[] = [];
  const manage = async (method: string, path: string, json?: object, key?: string): Promise<Json> => {
    const answer = await service().call(method, `/v1/keys${path}`, { json, ...(key && { key }) });
    const { data } = answer.body;
    if (data.key !== undefined) secrets.push(data.key, data.key.split('_')[2]);
    const { msg, ...record } = await recordOf(answer);
    return { data, record: [msg, said(record)] };
  };
  const { data, record } = await manage('POST', '', { name: 'by key', scopes: ['admin'] });
  const of = { audit: true, key: data.id, by: idOf(service().key), address: '127.0.0.1' };
  expect(record).toEqual(['key created', of]);
  const rotated = await manage('POST', `/${data.id}/rotate`, undefined, data.key);
  expect(rotated.record).toEqual(['key rotated', { ...of, by: data.id }]);
  expect((await manage('DELETE', `/${data.id}`)).record).toEqual(['key revoked', of]);
  expect(secrets).toHaveLength(4);
  secrets.push(service().key, service().key.split('_')[2] ?? '', GATEWAY_API_KEY, OTHER, 'password123');
  for (const secret of secrets) expect(lines.join('')).not.toContain(secret);
});
