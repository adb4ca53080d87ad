/** A4. Requests with a video inside: how many arrive at once and for how long, and that slow ones hold up no others. */
import { once } from 'node:events';
import { type ClientRequest, createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import { receivedBody } from 'soundpost-testing/received-body';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readJobJson } from '../../src/api/request.ts';
import type { RouteContext } from '../../src/api/route.ts';

const PLACES = 8;
const JOB = JSON.stringify({ source: { type: 'url', url: 'https://example.com/a.mp4' } });
const WITH_VIDEO = JSON.stringify({ source: { type: 'data', data: 'A'.repeat(100 * 1024) } });

let server: Server;
let requests = 0;
/** Of the bodies that were read. */
const releases: (() => void)[] = [];
const sent: ClientRequest[] = [];

beforeEach(async () => {
  requests = 0;
  const app = express();
  app.post('/', async (request, response) => {
    requests += 1;
    try {
      const context = { request, response, key: { id: request.get('x-api-key') } };
      releases.push((await readJobJson(context as unknown as RouteContext)).release);
      response.json('read');
    } catch (error) {
      const { code, retryAfterSeconds } = error as ServiceError;
      response.json(error instanceof ServiceError ? [code, retryAfterSeconds] : String(error));
    }
  });
  server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  vi.useRealTimers();
  for (const release of releases.splice(0)) release();
  for (const request of sent.splice(0)) request.destroy();
  server.close();
  await once(server, 'close');
});

/** Without a Content-Length. @param body all of it, or what comes before a silence */
function send(body: string, isWhole = true, key = 'a'): Promise<unknown> {
  const { port } = server.address() as AddressInfo;
  const headers = { 'x-api-key': key, 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  const request = httpRequest({ port, method: 'POST', headers, agent: false });
  sent.push(request);
  const answer = new Promise((resolve, reject) => {
    request.on('error', reject).on('response', (response) => {
      receivedBody(response).then((bytes) => resolve(JSON.parse(String(bytes))), reject);
    });
  });
  answer.catch(() => undefined);
  request.write(body);
  if (isWhole) request.end();
  return answer;
}

/** What is answered, by a clock that moves until then. */
async function inTime(answer: Promise<unknown>): Promise<{ answered: unknown; seconds: number }> {
  const fromMs = performance.now();
  let isOver = false;
  void answer.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    vi.advanceTimersByTime(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { answered: await answer, seconds: Math.round((performance.now() - fromMs) / 1000) };
}

it('up to 64 KiB no place is needed, however slowly they come', async () => {
  for (let nth = 0; nth < 2 * PLACES; nth += 1) void send('{', false);
  await until('all have begun', () => requests === 2 * PLACES);
  expect(await send(JOB)).toBe('read');
  expect(await send(WITH_VIDEO)).toBe('read');
});

it('a place is kept until the video is stored, and waited for so long', async () => {
  const all = Array.from({ length: PLACES }, () => send(WITH_VIDEO));
  expect(await Promise.all(all)).toEqual(all.map(() => 'read'));
  expect(await send(JOB)).toBe('read');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const { answered, seconds } = await inTime(send(WITH_VIDEO));
  expect(answered).toEqual(['SERVICE_UNAVAILABLE', 10]);
  expect(seconds).toBeGreaterThanOrEqual(10);
  const next = send(WITH_VIDEO);
  releases[0]?.();
  expect(await next).toBe('read');
});

it('one that stops in the middle gives its place back', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const stopped = Array.from({ length: PLACES }, () => send(WITH_VIDEO.slice(0, 80 * 1024), false));
  const { answered, seconds } = await inTime(Promise.all(stopped));
  expect(answered).toEqual(stopped.map(() => ['INVALID_REQUEST', undefined].map((one) => one ?? null)));
  expect(seconds).toBeGreaterThanOrEqual(60);
  expect(await send(WITH_VIDEO)).toBe('read');
});
