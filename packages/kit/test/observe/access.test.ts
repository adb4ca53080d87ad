/** Who may read the metrics: on a real server for the answers, and case by case for whom no test can send as. */
import type { IncomingMessage } from 'node:http';
import { type RawAnswer, rawRequest } from 'soundpost-testing/raw-get';
import { afterEach, describe, expect, it } from 'vitest';
import { type Listener, listen } from '../../src/http/listener.ts';
import { Metrics } from '../../src/observe/metrics/scrape.ts';
import { mayScrape, measured } from '../../src/observe/metrics/server.ts';

const TOKEN = 'a token of these tests';

let server: Listener | undefined;
afterEach(async () => {
  await server?.close(0);
  server = undefined;
});

async function ask(
  token: string | undefined,
  headers: Record<string, string>,
  method = 'GET',
  isPublished = false,
): Promise<RawAnswer> {
  const metrics = new Metrics(['api'], '1.2.3');
  server = await listen('127.0.0.1', 0, () =>
    measured((_request, response) => response.writeHead(204).end(), {
      metrics,
      server: 'api',
      token,
      isPublished,
    }),
  );
  return rawRequest(server.address.port, method, '/metrics', headers);
}

describe('with METRICS_TOKEN', () => {
  it('whoever brings it is answered, also through a proxy', async () => {
    const answer = await ask(TOKEN.replaceAll(' ', '-'), {
      authorization: `Bearer ${TOKEN.replaceAll(' ', '-')}`,
      'x-forwarded-for': '203.0.113.7',
    });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.text).toContain('soundpost_build_info{version="1.2.3",parts="api"} 1');
  });

  it.each([
    ['none', {}],
    ['a wrong one', { authorization: 'Bearer another-token-entirely' }],
    ['the beginning of it', { authorization: 'Bearer right-tok' }],
    ['it with more', { authorization: 'Bearer right-tokens' }],
    ['it by another scheme', { authorization: 'Basic right-token' }],
    ['it twice', { authorization: 'Bearer right-token right-token' }],
    ['it in the address', { 'x-metrics-token': 'right-token' }],
  ])('nobody is answered with %s, also from this machine', async (_what, headers) => {
    const answer = await ask('right-token', headers);
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Bearer realm="metrics"']);
    expect(answer.text).not.toContain('soundpost_');
  });
});

describe('without it', () => {
  it('this machine is answered', async () => {
    expect((await ask(undefined, {})).status).toBe(200);
    await server?.close(0);
    expect((await ask(undefined, { host: 'localhost:8080' })).status).toBe(200);
  });

  it.each([
    ['what a proxy forwards for somebody', { 'x-forwarded-for': '203.0.113.7' }],
    [
      'what a proxy says it forwards for this machine, which anybody can say',
      { 'x-forwarded-for': '127.0.0.1' },
    ],
    ['what is forwarded by RFC 7239', { forwarded: 'for=203.0.113.7' }],
    ['what is forwarded in the way of nginx', { 'x-real-ip': '203.0.113.7' }],
    ['what was asked of another name', { 'x-forwarded-host': 'api.example.com' }],
    ['what came by a proxy', { via: '1.1 proxy' }],
    ['a name that is not of this machine', { host: 'api.example.com' }],
    ['an address that is not of this machine', { host: '203.0.113.7:8080' }],
    ['a name that begins like this machine', { host: '127.0.0.1.example.com' }],
  ])('%s is not', async (_what, headers) => {
    const answer = await ask(undefined, headers);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('METRICS_TOKEN');
    expect(answer.text).not.toContain('soundpost_');
  });

  it.each([
    ['127.0.0.1', true],
    ['127.8.9.10', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['10.0.0.5', false],
    ['203.0.113.7', false],
    ['::ffff:203.0.113.7', false],
    ['fe80::1', false],
    ['127.0.0.1.example', false],
    ['', false],
  ])('the peer %s: %s', (remoteAddress, isLetIn) => {
    const request = { socket: { remoteAddress }, headers: { host: '127.0.0.1:8080' } };
    expect(mayScrape(request as unknown as IncomingMessage, { token: undefined, isPublished: false })).toBe(
      isLetIn,
    );
  });
});

describe('of a service that has the name of another machine', () => {
  it('nobody is answered without a token: who asks may be a proxy that says nothing of itself', async () => {
    expect((await ask(undefined, {}, 'GET', true)).status).toBe(403);
  });

  it('whoever brings the token is', async () => {
    const headers = { authorization: 'Bearer right-token' };
    expect((await ask('right-token', headers, 'GET', true)).status).toBe(200);
  });
});

it('other methods are told which ones there are', async () => {
  const answer = await ask(undefined, {}, 'POST');
  expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
});
