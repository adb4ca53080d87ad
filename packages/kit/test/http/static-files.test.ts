/** The files of a page: compressed, kept, and not sent again to who has them (RFC 9110). */

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import express from 'express';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { filesIn, staticFiles } from '../../src/http/static-files.ts';

const SCRIPT = `// ${'a line that repeats itself. '.repeat(50)}\n`;
let folder = '';
let base = '';
let server: ReturnType<ReturnType<typeof express>['listen']>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-static-'));
  await writeFile(join(folder, 'page one #2.js'), SCRIPT);
  await writeFile(join(folder, 'odd.xyz'), 'x');
  const app = express();
  app.set('etag', false);
  app.use(
    '/page',
    staticFiles(
      new Map<string, URL | string>([
        ...filesIn(pathToFileURL(`${folder}/`), 'files/'),
        ['made.js', 'export {};\n'],
      ]),
    ),
  );
  app.use((_request, response) => void response.status(404).end('nobody'));
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/page`;
});
afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function get(
  path: string,
  headers: Record<string, string> = {},
  method: 'GET' | 'HEAD' | 'POST' = 'GET',
) {
  const {
    statusCode,
    headers: answered,
    body,
  } = await request(`${base}/${path}`, { method, headers, reset: true });
  return { status: statusCode, headers: answered, bytes: Buffer.from(await body.arrayBuffer()) };
}

const FILE = 'files/page%20one%20%232.js';

it.each([
  ['br, gzip', 'br', brotliDecompressSync],
  ['gzip', 'gzip', gunzipSync],
  ['br;q=0, gzip', 'gzip', gunzipSync],
  ['identity', undefined, (bytes: Buffer) => bytes],
])('who accepts %s gets %s', async (accepted, encoding, decode) => {
  const { status, headers, bytes } = await get('made.js', { 'accept-encoding': accepted });
  expect([status, headers['content-encoding'], headers.vary]).toEqual([200, encoding, 'Accept-Encoding']);
  expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
  expect(Number(headers['content-length'])).toBe(bytes.length);
  expect(decode(bytes).toString()).toBe('export {};\n');
});

it('a file of a folder is found by its name as an address has it, and is smaller on its way', async () => {
  const plain = await get(FILE, { 'accept-encoding': 'identity' });
  expect(plain.bytes.toString()).toBe(SCRIPT);
  const packed = await get(FILE, { 'accept-encoding': 'br' });
  expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 10);
  expect(packed.headers.etag).not.toBe(plain.headers.etag);
});

it('who has a file is told that it has not changed; another encoding is another file', async () => {
  const { headers } = await get('made.js', { 'accept-encoding': 'gzip' });
  expect(headers['cache-control']).toBe('no-cache');
  const known = { 'if-none-match': String(headers.etag) };
  const again = await get('made.js', { ...known, 'accept-encoding': 'gzip' });
  expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, headers.etag]);
  expect((await get('made.js', { ...known, 'accept-encoding': 'br' })).status).toBe(200);
});

it('HEAD says what GET would, without the file', async () => {
  const got = await get('made.js', { 'accept-encoding': 'br' });
  const head = await get('made.js', { 'accept-encoding': 'br' }, 'HEAD');
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
  for (const name of ['content-length', 'content-type', 'content-encoding', 'etag', 'vary']) {
    expect([name, head.headers[name]]).toEqual([name, got.headers[name]]);
  }
});

it.each(['', 'files', 'files/', 'other.js', 'files/..%2fmade.js', '%ff'])(
  '/%s is left to whoever comes next',
  async (path) => {
    expect((await get(path)).bytes.toString()).toBe('nobody');
  },
);

it('other methods are too', async () => {
  expect((await get('made.js', {}, 'POST')).bytes.toString()).toBe('nobody');
});

it('a file of a kind without a media type is a fault of ours, not a download', async () => {
  expect((await get('files/odd.xyz')).status).toBe(500);
});
