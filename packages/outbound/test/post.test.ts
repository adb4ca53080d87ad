import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundFailed, OutboundRefused } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';
import { type HostileServer, httpServer } from './hostile-server.ts';

type Handler = Parameters<typeof httpServer>[0];

let server: HostileServer;
let outbound: Outbound;
let handle: Handler;

beforeEach(async () => {
  server = await httpServer((request, response, nth) => handle(request, response, nth));
  outbound = createOutbound({
    allow: parseAllowRules(`127.0.0.1:${server.port}`),
    ports: [],
    userAgent: 'Soundpost test',
    logger: pino({ level: 'silent' }),
  });
});
afterEach(async () => {
  await outbound.close();
  await server.close();
});

function deliver(options: Partial<Parameters<Outbound['post']>[0]> = {}) {
  const url = `http://127.0.0.1:${server.port}/hook`;
  return outbound.post({ url, headers: {}, body: '{}', timeoutMs: 5_000, ...options });
}

test('the body arrives byte for byte with the headers that were given', async () => {
  let received: Promise<string> | undefined;
  let request: IncomingMessage | undefined;
  handle = (incoming, response) => {
    request = incoming;
    received = text(incoming);
    incoming.on('end', () => response.writeHead(204).end());
  };
  const body = '{"event":"job.completed","name":"Größe \\u0000"}\n';
  const answer = await deliver({
    body,
    headers: { 'webhook-id': 'msg_1', 'Content-Type': 'application/json' },
  });
  expect(answer).toEqual({ status: 204, latencyMs: expect.any(Number), bodySnippet: '' });
  expect(await received).toBe(body);
  expect(request?.headers).toMatchObject({
    'webhook-id': 'msg_1',
    'content-type': 'application/json',
    'user-agent': 'Soundpost test',
    'content-length': String(Buffer.byteLength(body)),
  });
});

test('bytes are sent as they are', async () => {
  const lengths: (string | undefined)[] = [];
  handle = (request, response) => {
    lengths.push(request.headers['content-length']);
    response.end();
  };
  await deliver({ body: new Uint8Array([0, 255, 10]) });
  expect(lengths).toEqual(['3']);
});

test.each([200, 302, 410, 503])('status %i is returned as it is', async (status) => {
  handle = (_request, response) => response.writeHead(status, { location: '/elsewhere' }).end('words');
  expect(await deliver()).toMatchObject({ status, bodySnippet: 'words' });
  expect(server.requests.map(({ url }) => url)).toEqual(['/hook']);
});

test.each([[100], [102], [103], [103, 100]])('1xx answers are skipped: %s %s', async (...statuses) => {
  handle = (request, response) => {
    for (const status of statuses) request.socket.write(`HTTP/1.1 ${status} Wait\r\n\r\n`);
    response.writeHead(204).end();
  };
  expect(await deliver()).toMatchObject({ status: 204 });
});

test.each([
  ['120', () => '120', 120],
  ['0', () => '0', 0],
  ['an hour from now', () => new Date(Date.now() + 3_600_000).toUTCString(), expect.closeTo(3600, -2)],
  ['a minute ago', () => new Date(Date.now() - 60_000).toUTCString(), 0],
  ['soon', () => 'soon', undefined],
  ['-5', () => '-5', undefined],
])('Retry-After "%s" is told in seconds', async (_when, value, seconds) => {
  handle = (_request, response) => response.writeHead(503, { 'retry-after': value() }).end();
  expect((await deliver()).retryAfterSeconds).toEqual(seconds);
});

test('an endless answer is read no further than 16 KiB', async () => {
  let sentBytes = 0;
  let closed = false;
  handle = (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(1_000))) sentBytes += 1_000;
    };
    response.on('drain', more).on('close', () => {
      closed = true;
    });
    more();
  };
  const answer = await deliver();
  expect(answer).toMatchObject({ status: 200, bodySnippet: 'x'.repeat(1_024) });
  await expect.poll(() => closed).toBe(true);
  // What the socket's buffers took on the way is far from what five seconds of reading would have let through.
  expect(sentBytes).toBeLessThan(10_000_000);
});

test('control characters of an answer do not reach the record', async () => {
  handle = (_request, response) => response.end('a\r\nb\u0000c\u001b[31m');
  expect(await deliver()).toMatchObject({ bodySnippet: 'a  b c [31m' });
});

test('an answer whose body never ends counts by its status', async () => {
  handle = (_request, response) => response.writeHead(200).write('half');
  expect(await deliver()).toMatchObject({ status: 200, bodySnippet: 'half' });
});

test('an answer whose body breaks off counts by its status', async () => {
  handle = (_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('half', () => response.socket?.destroySoon());
  };
  expect(await deliver()).toMatchObject({ status: 200, bodySnippet: 'half' });
});

test('no answer in time is a timeout', async () => {
  handle = () => {};
  const error = await deliver({ timeoutMs: 50 }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OutboundFailed);
  expect(error).toMatchObject({ kind: 'timeout', retryable: true });
});

test('a broken connection is a reset', async () => {
  handle = (request) => request.socket.resetAndDestroy();
  await expect(deliver()).rejects.toMatchObject({ kind: 'reset', retryable: true });
});

test('a delivery is made once: no failure is tried again here', async () => {
  handle = (request) => request.socket.resetAndDestroy();
  await expect(deliver()).rejects.toBeInstanceOf(OutboundFailed);
  expect(server.requests).toHaveLength(1);
});

test('an abort ends it with its reason', async () => {
  const controller = new AbortController();
  const reason = new Error('shutting down');
  handle = () => controller.abort(reason);
  await expect(deliver({ signal: controller.signal })).rejects.toBe(reason);
});

test.each([
  'Host',
  'content-length',
  'Transfer-Encoding',
  'connection',
  'upgrade',
  'expect',
  'TE',
  'keep-alive',
])('the header %s is not for a caller to set', async (name) => {
  handle = (_request, response) => response.end();
  await expect(deliver({ headers: { [name]: 'metadata.google.internal' } })).rejects.toBeInstanceOf(
    OutboundRefused,
  );
  expect(server.requests).toHaveLength(0);
});

test.each([
  ['a value with a line break', { 'x-custom': 'a\r\nHost: other' }],
  ['a name with a space', { 'x custom': 'a' }],
  ['a value outside Latin-1', { 'x-custom': '☃' }],
] as [string, Record<string, string>][])('%s is no header', async (_what, headers) => {
  handle = (_request, response) => response.end();
  await expect(deliver({ headers })).rejects.toBeInstanceOf(OutboundFailed);
  expect(server.requests).toHaveLength(0);
});
