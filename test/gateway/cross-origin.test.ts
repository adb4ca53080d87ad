/** Web pages that call the gateway: asked for on real sockets as a browser asks (WHATWG Fetch, "CORS protocol"). */

import { fetch } from 'soundpost-testing/http';
import { freePort } from 'soundpost-testing/ports';
import { describe, expect, it } from 'vitest';
import { GATEWAY_API_KEY, useService } from '../api/api-fixture.ts';

const apiPort = await freePort();
const service = useService({
  parts: ['gateway'],
  environment: { API_PORT: String(apiPort), CORS_ORIGINS: 'https://app.example.com' },
});
const listed = [
  'https://app.example.com',
  `http://127.0.0.1:${apiPort}`,
  `http://localhost:${apiPort}`,
  `http://[::1]:${apiPort}`,
];
const strangers = ['https://elsewhere.example', 'http://localhost:1', `https://localhost:${apiPort}`, 'null'];

const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${service().gatewayUrl}${path}`, init);
const preflight = (origin: string): Promise<Response> =>
  ask('/instance/create', {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'apikey,content-type,idempotency-key',
    },
  });
const allowed = (response: Response): string[] =>
  [...response.headers.keys()].filter((name) => name.startsWith('access-control-'));

describe.each(listed)('a page of %s', (origin) => {
  it('asks without a key whether it may, and may', async () => {
    const response = await preflight(origin);
    expect(response.status).toBe(204);
    const { headers } = response;
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('access-control-allow-methods')).toBe('GET,POST,DELETE');
    expect(headers.get('access-control-allow-headers')).toBe('apikey,content-type,idempotency-key');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  });

  it('reads the answer to its key, and to a wrong one', async () => {
    for (const [apikey, status] of [[GATEWAY_API_KEY, 200] as const, ['wrong-key-of-a-page', 401] as const]) {
      const response = await ask('/instance/fetchInstances', { headers: { Origin: origin, apikey } });
      expect(response.status).toBe(status);
      expect(response.headers.get('access-control-allow-origin')).toBe(origin);
      expect(response.headers.get('vary')).toContain('Origin');
    }
  });
});

it.each(strangers)('a page of %s learns nothing', async (origin) => {
  const asked = await preflight(origin);
  expect(asked.status).toBe(401);
  expect(allowed(asked)).toEqual([]);
  const answer = await ask('/instance/fetchInstances', {
    headers: { Origin: origin, apikey: GATEWAY_API_KEY },
  });
  expect(allowed(answer)).toEqual([]);
  expect(answer.headers.get('vary')).toContain('Origin');
});

it('what needs no key is for no page of elsewhere', async () => {
  const [origin = ''] = listed;
  for (const path of ['/inbox', '/inbox/api/session', '/health/ready']) {
    expect(allowed(await ask(path, { headers: { Origin: origin } }))).toEqual([]);
  }
});

describe('where the console finds the gateway', () => {
  const published = useService({
    environment: { GATEWAY_PUBLIC_URL: 'https://chat.example.com/gateway' },
    parts: [],
  });
  const other = useService({ environment: { GATEWAY_KIND: 'other', GATEWAY_PORT: '8081' }, parts: [] });
  const usual = useService({ environment: { GATEWAY_PORT: '8081' }, parts: [] });

  it.each([
    [
      'GATEWAY_PUBLIC_URL',
      published,
      'https://chat.example.com/gateway',
      "connect-src 'self' https://chat.example.com;",
    ],
    ['the port', usual, 'http://127.0.0.1:8081', "connect-src 'self' http://127.0.0.1:8081;"],
    ['nothing: it is another server', other, '', "connect-src 'self';"],
  ])('%s', async (_by, of, address, policy) => {
    const response = await fetch(`${of().url}/`);
    expect(await response.text()).toContain(`<meta name="soundpost-gateway" content="${address}" />`);
    expect(response.headers.get('content-security-policy')).toContain(policy);
  });
});
