/** Requests to an account's API: what goes in and out, and whether a failed one may have arrived. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { neverSent, OutboundFailed } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';
import { type HostileServer, httpServer } from './hostile-server.ts';

type Handler = Parameters<typeof httpServer>[0];

let server: HostileServer;
let outbound: Outbound;
let handle: Handler;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-call-'));
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
  await rm(folder, { recursive: true });
});

const call = (options: Partial<Parameters<Outbound['call']>[0]> = {}) =>
  outbound.call({
    url: `http://127.0.0.1:${server.port}/v1/send`,
    method: 'POST',
    timeoutMs: 5000,
    ...options,
  });

test('JSON and forms with a file go in, any status comes out', async () => {
  const bodies: string[] = [];
  handle = async (request, response) => {
    bodies.push(`${request.headers['content-type']} ${await text(request)}`);
    response.writeHead(400, { 'content-type': 'application/json', 'retry-after': '7' }).end('{"error":1}');
  };
  const answer = await call({ json: { to: 1 }, headers: { authorization: 'Bearer t' } });
  expect(answer).toEqual({
    status: 400,
    retryAfterSeconds: 7,
    text: '{"error":1}',
  });
  const path = join(folder, 'voice.ogg');
  await writeFile(path, 'OggS');
  await call({ form: { kind: 'audio', file: { path, name: 'voice.ogg', type: 'audio/ogg' } } });
  expect(bodies[0]).toBe('application/json {"to":1}');
  expect(bodies[1]).toMatch(
    /^multipart\/form-data; boundary=[\s\S]*name="kind"[\s\S]*filename="voice.ogg"[\s\S]*OggS/,
  );
});

test('a file is saved up to its limit, and a redirect is not followed', async () => {
  const connections = new Set<string | undefined>();
  handle = (request, response) => {
    connections.add(request.headers.connection);
    if (request.url === '/moved') response.writeHead(302, { location: '/file' }).end();
    else response.end('0123456789');
  };
  const saveTo = { path: join(folder, 'file'), maxBytes: 10 };
  expect(await call({ method: 'GET', saveTo })).toMatchObject({ status: 200, text: '' });
  expect(await readFile(saveTo.path, 'utf8')).toBe('0123456789');
  const tooSmall = { path: join(folder, 'other'), maxBytes: 9 };
  await expect(call({ method: 'GET', saveTo: tooSmall })).rejects.toMatchObject({ kind: 'too-large' });
  await expect(readFile(tooSmall.path)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(await call({ url: `http://127.0.0.1:${server.port}/moved` })).toMatchObject({ status: 302 });
  // None is kept: one that the server closes would swallow the next request.
  expect([...connections]).toEqual(['close']);
});

test('a failure says whether the server can have the request', async () => {
  handle = (_, response) => response.destroy();
  const broken = await call().catch((error: unknown) => error);
  expect(broken).toBeInstanceOf(OutboundFailed);
  expect(neverSent(broken)).toBe(false);
  const refused = await call({ url: 'http://10.0.0.1/' }).catch((error: unknown) => error);
  expect(neverSent(refused)).toBe(true);
  await server.close();
  expect(neverSent(await call().catch((error: unknown) => error))).toBe(true);
  server = await httpServer((request, response, nth) => handle(request, response, nth));
});
