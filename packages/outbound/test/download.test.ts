import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundFailed } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';
import { type HostileServer, httpServer, tcpServer } from './hostile-server.ts';

type Limits = NonNullable<Parameters<Outbound['download']>[0]['limits']>;
type Handler = Parameters<typeof httpServer>[0];

const content = randomBytes(300_000);
const half = content.length / 2;

let folder: string;
let file: string;
let closers: (() => Promise<void>)[];
/** Emits the number of bytes that a download has taken, as a name, with each piece. */
let taken: EventEmitter;

beforeEach(async () => {
  taken = new EventEmitter();
  folder = await mkdtemp(join(tmpdir(), 'outbound-'));
  file = join(folder, 'source');
  closers = [() => rm(folder, { recursive: true })];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
});

async function serve(handle: Handler): Promise<HostileServer> {
  const server = await httpServer(handle);
  closers.push(server.close);
  return server;
}

async function serveRaw(answer: (socket: Socket) => void): Promise<{ port: number }> {
  const server = await tcpServer(answer);
  closers.push(server.close);
  return server;
}

function outboundTo(port: number): Outbound {
  const outbound = createOutbound({
    allow: parseAllowRules(`127.0.0.1:${port}`),
    ports: [],
    userAgent: 'Soundpost test',
    logger: pino({ level: 'silent' }),
  });
  closers.push(() => outbound.close());
  return outbound;
}

interface Attempt {
  readonly path?: string;
  readonly maxBytes?: number;
  readonly limits?: Limits;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: { receivedBytes: number; totalBytes: number | undefined }) => void;
  readonly makeRoom?: (bytes: number) => Promise<void>;
}

function downloadFrom({ port }: { port: number }, attempt: Attempt = {}) {
  const { path = '/video.mp4', limits, onProgress, ...options } = attempt;
  return outboundTo(port).download({
    url: `http://127.0.0.1:${port}${path}`,
    file,
    maxBytes: 10_000_000,
    limits: { backoffMs: 1, ...limits },
    onProgress(progress) {
      taken.emit(`${progress.receivedBytes}`);
      onProgress?.(progress);
    },
    ...options,
  });
}

/** The failure, after a look at what every failure owes: no file left behind, nothing said about the address. */
async function failureOf(download: Promise<unknown>): Promise<OutboundFailed> {
  const error = await download.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OutboundFailed);
  if (!(error instanceof OutboundFailed)) throw error;
  expect(error.message).not.toMatch(/127\.0\.0\.1|:\d{4,5}|http|video/);
  expect(await readdir(folder)).toEqual([]);
  return error;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function expectWholeFile(expected: Uint8Array = content): Promise<void> {
  expect(sha256(await readFile(file))).toBe(sha256(expected));
}

/** Cuts the connection once so many bytes were taken: of what has arrived a break discards whatever the reader, on its way to the disk, has not. */
function cutAt(takenBytes: number, response: ServerResponse): void {
  taken.once(`${takenBytes}`, () => response.socket?.destroySoon());
}

/** Sends the head and the first half of the content, then cuts the connection. */
function cutAfterHalf(response: ServerResponse, headers: Record<string, string>): void {
  response.writeHead(200, { 'content-length': content.length, ...headers });
  response.write(content.subarray(0, half));
  cutAt(half, response);
}

function rest(
  response: ServerResponse,
  range: string | undefined,
  headers: Record<string, string> = {},
): void {
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]);
  response.writeHead(206, {
    'content-range': `bytes ${start}-${content.length - 1}/${content.length}`,
    'content-length': content.length - start,
    ...headers,
  });
  response.end(content.subarray(start));
}

describe('a source that behaves', () => {
  test('lands in a new file that nobody else may read', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': content.length }).end(content);
    });
    const progress: { receivedBytes: number; totalBytes: number | undefined }[] = [];
    const downloaded = await downloadFrom(server, { onProgress: (step) => progress.push(step) });
    expect(downloaded).toEqual({
      sizeBytes: content.length,
      contentType: 'video/mp4',
      isOpenEnded: false,
      filename: 'video.mp4',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/video\.mp4$/),
    });
    await expectWholeFile();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(progress.at(-1)).toEqual({ receivedBytes: content.length, totalBytes: content.length });
    expect(progress.map(({ receivedBytes }) => receivedBytes)).toEqual(
      progress.map(({ receivedBytes }) => receivedBytes).sort((a, b) => a - b),
    );
  });

  test('may leave its length open', async () => {
    const server = await serve((_request, response) => response.end(content));
    const { sizeBytes } = await downloadFrom(server);
    expect(sizeBytes).toBe(content.length);
    await expectWholeFile();
  });

  test('may be empty', async () => {
    const server = await serve((_request, response) => response.end());
    expect(await downloadFrom(server)).toMatchObject({ sizeBytes: 0 });
  });

  test('may redirect to another path', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/video.mp4') response.writeHead(302, { location: '/elsewhere' }).end();
      else response.end(content);
    });
    expect(await downloadFrom(server)).toMatchObject({ filename: 'video.mp4' });
    await expectWholeFile();
  });

  test('is asked for an unpacked body', async () => {
    const server = await serve((_request, response) => response.end());
    await downloadFrom(server);
    expect(server.requests[0]?.headers['accept-encoding']).toBe('identity');
  });

  test('never overwrites a file', async () => {
    const server = await serve((_request, response) => response.end(content));
    await writeFile(file, 'mine');
    await expect(downloadFrom(server)).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readFile(file, 'utf8')).toBe('mine');
    expect(server.requests).toHaveLength(0);
  });
});

describe('a source that breaks off', () => {
  test('is continued where it broke when its ETag is strong', async () => {
    const server = await serve((request, response, nth) => {
      if (nth === 1) cutAfterHalf(response, { etag: '"one"' });
      else rest(response, request.headers.range, { etag: '"one"' });
    });
    expect(await downloadFrom(server)).toMatchObject({ sizeBytes: content.length });
    await expectWholeFile();
    expect(server.requests[1]?.headers).toMatchObject({ range: `bytes=${half}-`, 'if-range': '"one"' });
  });

  test('is continued by its date when that is older than the answer', async () => {
    const lastModified = new Date(Date.now() - 60_000).toUTCString();
    const server = await serve((request, response, nth) => {
      if (nth === 1) cutAfterHalf(response, { 'last-modified': lastModified });
      else rest(response, request.headers.range);
    });
    await downloadFrom(server);
    await expectWholeFile();
    expect(server.requests[1]?.headers).toMatchObject({ range: `bytes=${half}-`, 'if-range': lastModified });
  });

  test('is continued twice', async () => {
    const server = await serve((request, response, nth) => {
      if (nth === 1) return cutAfterHalf(response, { etag: '"one"' });
      if (nth === 3) return rest(response, request.headers.range);
      response.writeHead(206, {
        'content-range': `bytes ${half}-${content.length - 1}/${content.length}`,
        'content-length': content.length - half,
      });
      response.write(content.subarray(half, half + 1_000));
      cutAt(half + 1_000, response);
    });
    await downloadFrom(server);
    await expectWholeFile();
    expect(server.requests.map(({ headers }) => headers.range)).toEqual([
      undefined,
      `bytes=${half}-`,
      `bytes=${half + 1_000}-`,
    ]);
  });

  test('starts anew when the file has changed, also into something shorter', async () => {
    const changed = randomBytes(half - 1);
    const server = await serve((_request, response, nth) => {
      if (nth === 1) cutAfterHalf(response, { etag: '"one"' });
      else response.writeHead(200, { etag: '"two"', 'content-length': changed.length }).end(changed);
    });
    expect(await downloadFrom(server)).toMatchObject({ sizeBytes: changed.length });
    await expectWholeFile(changed);
  });

  test.each([
    ['no validator', () => ({})],
    ['a weak ETag', () => ({ etag: 'W/"one"' })],
    // Of the moment of the answer: one that was taken when this file was loaded is older.
    [
      'a date as young as the answer',
      () => ({ 'last-modified': new Date(Date.now() + 1_000).toUTCString() }),
    ],
  ] as [string, () => Record<string, string>][])(
    'starts anew without a range when it has %s',
    async (_what, headers) => {
      const server = await serve((_request, response, nth) => {
        if (nth === 1) cutAfterHalf(response, headers());
        else response.end(content);
      });
      await downloadFrom(server);
      await expectWholeFile();
      expect(server.requests[1]?.headers).not.toHaveProperty('range');
    },
  );

  test.each([
    ['another place', { 'content-range': `bytes 7-${content.length - 1}/${content.length}` }],
    ['a file of another size', { 'content-range': `bytes ${half}-${content.length}/${content.length + 1}` }],
    ['no place at all', {}],
    [
      'the right place of another version',
      { 'content-range': `bytes ${half}-${content.length - 1}/${content.length}`, etag: '"two"' },
    ],
  ] as [string, Record<string, string>][])(
    'starts anew when it is continued at %s',
    async (_what, headers) => {
      const server = await serve((_request, response, nth) => {
        if (nth === 1) cutAfterHalf(response, { etag: '"one"' });
        else if (nth === 2) response.writeHead(206, headers).end(randomBytes(content.length - half));
        else response.end(content);
      });
      await downloadFrom(server);
      await expectWholeFile();
      expect(server.requests[2]?.headers).not.toHaveProperty('range');
    },
  );

  test('starts anew when the rest is longer than it may be', async () => {
    const server = await serve((_request, response, nth) => {
      if (nth === 1) return cutAfterHalf(response, { etag: '"one"' });
      if (nth === 3) return response.end(content);
      response.writeHead(206, { 'content-range': `bytes ${half}-${content.length - 1}/${content.length}` });
      response.end(content);
    });
    await downloadFrom(server);
    await expectWholeFile();
    expect(server.requests[2]?.headers).not.toHaveProperty('range');
  });

  test('starts anew when the range is refused', async () => {
    const server = await serve((_request, response, nth) => {
      if (nth === 1) cutAfterHalf(response, { etag: '"one"' });
      else if (nth === 2) response.writeHead(416).end();
      else response.end(content);
    });
    await downloadFrom(server);
    await expectWholeFile();
  });

  test('in the middle of a chunked body is noticed', async () => {
    const server = await serve((_request, response, nth) => {
      if (nth > 1) return response.end(content);
      response.write(content.subarray(0, half));
      cutAt(half, response);
    });
    await downloadFrom(server);
    await expectWholeFile();
    expect(server.requests).toHaveLength(2);
  });

  test('each time is given up after three tries', async () => {
    const server = await serve((_request, response) => cutAfterHalf(response, {}));
    expect(await failureOf(downloadFrom(server))).toMatchObject({ kind: 'reset', retryable: true });
    expect(server.requests).toHaveLength(3);
  });

  test('before it answers is tried again', async () => {
    const server = await serve((request, response, nth) => {
      if (nth < 3) request.socket.resetAndDestroy();
      else response.end(content);
    });
    await downloadFrom(server);
    expect(server.requests).toHaveLength(3);
  });
});

describe('a source that lies about its length', () => {
  test('with fewer bytes than declared, the connection left open, times out', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': content.length }).write(content.subarray(0, half));
    });
    const attempt = downloadFrom(server, { limits: { idleTimeoutMs: 100, tries: 2 } });
    expect(await failureOf(attempt)).toMatchObject({ kind: 'timeout', retryable: true });
    expect(server.requests).toHaveLength(2);
  });

  test('with more bytes than declared gives what it declared', async () => {
    const server = await serveRaw((socket) => {
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello and more');
    });
    expect(await downloadFrom(server)).toMatchObject({ sizeBytes: 5 });
    expect(await readFile(file, 'utf8')).toBe('hello');
  });

  test('with a length above the limit is refused before the body', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 2_000_000 }).write('x');
    });
    expect(await failureOf(downloadFrom(server, { maxBytes: 1_000_000 }))).toMatchObject({
      kind: 'too-large',
      retryable: false,
    });
    expect(server.requests).toHaveLength(1);
  });

  test('and never ends is cut off at the limit', async () => {
    let sentBytes = 0;
    const server = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(content)) sentBytes += content.length;
      };
      response.on('drain', more);
      more();
    });
    expect(await failureOf(downloadFrom(server, { maxBytes: 1_000_000 }))).toMatchObject({
      kind: 'too-large',
      retryable: false,
    });
    expect(server.requests).toHaveLength(1);
    expect(sentBytes).toBeLessThan(50_000_000);
  });

  test('may have exactly as many bytes as allowed, and not one more', async () => {
    const server = await serve((_request, response) => response.end(content));
    await downloadFrom(server, { maxBytes: content.length });
    await rm(file);
    await failureOf(downloadFrom(server, { maxBytes: content.length - 1 }));
  });

  test('counts what came before a break towards the limit', async () => {
    const server = await serve((request, response, nth) => {
      if (nth === 1) {
        response.writeHead(200, { etag: '"one"' }).write(content.subarray(0, half));
        cutAt(half, response);
        return;
      }
      const start = Number(/\d+/.exec(request.headers.range ?? '')?.[0]);
      response.writeHead(206, { 'content-range': `bytes ${start}-${content.length}/*` }).end(content);
    });
    const attempt = downloadFrom(server, { maxBytes: content.length });
    expect(await failureOf(attempt)).toMatchObject({ kind: 'too-large' });
    expect(server.requests).toHaveLength(2);
  });
});

describe('a source that is slow', () => {
  test('at 1 KiB/s is given up although it never falls silent', async () => {
    const server = await serve((_request, response) => {
      const drip = setInterval(() => response.write(Buffer.alloc(51)), 50);
      response.on('close', () => clearInterval(drip));
    });
    const attempt = downloadFrom(server, { limits: { rateWindowMs: 500, tries: 1 } });
    expect(await failureOf(attempt)).toMatchObject({ kind: 'too-slow' });
  });

  test('but above the minimum rate is waited for', async () => {
    const server = await serve((_request, response) => {
      let left = 30;
      const drip = setInterval(() => {
        response.write(Buffer.alloc(4_096));
        if (--left === 0) response.end();
      }, 50);
      response.on('close', () => clearInterval(drip));
    });
    expect(await downloadFrom(server, { limits: { rateWindowMs: 1000, tries: 1 } })).toMatchObject({
      sizeBytes: 30 * 4_096,
    });
  });

  test('to send headers times out on every try', async () => {
    const server = await serve(() => {});
    const attempt = downloadFrom(server, { limits: { headersTimeoutMs: 50 } });
    expect(await failureOf(attempt)).toMatchObject({ kind: 'timeout', retryable: true });
    // A connection that was given up may still lie before the server, with its request.
    await until('all have come', () => server.requests.length >= 3);
    expect(server.requests).toHaveLength(3);
  });

  test('in total is given up whatever it still sends', async () => {
    const server = await serve((_request, response) => {
      const stream = setInterval(() => response.write(Buffer.alloc(10_000)), 10);
      response.on('close', () => clearInterval(stream));
    });
    expect(await failureOf(downloadFrom(server, { limits: { totalMs: 300 } }))).toMatchObject({
      kind: 'timeout',
      retryable: false,
    });
    // None where this process stood still before it asked.
    expect(server.requests.length).toBeLessThanOrEqual(1);
  });
});

describe('a source that answers with a status', () => {
  test.each([500, 429])('%i is tried again', async (status) => {
    const server = await serve((_request, response, nth) => {
      if (nth < 3) response.writeHead(status).end('later');
      else response.end(content);
    });
    await downloadFrom(server);
    await expectWholeFile();
    expect(server.requests).toHaveLength(3);
  });

  test('503 each time fails after three tries', async () => {
    const server = await serve((_request, response) => response.writeHead(503).end());
    expect(await failureOf(downloadFrom(server))).toMatchObject({
      kind: 'status',
      status: 503,
      retryable: true,
    });
    expect(server.requests).toHaveLength(3);
  });

  test.each([400, 404, 204, 206, 304])('%i fails at once', async (status) => {
    const server = await serve((_request, response) => response.writeHead(status).end());
    expect(await failureOf(downloadFrom(server))).toMatchObject({ kind: 'status', status, retryable: false });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ['seconds', () => '1'],
    ['a date', () => new Date(Date.now() + 2_000).toUTCString()],
  ])('with Retry-After in %s is left alone until then', async (_form, retryAfter) => {
    const arrivals: number[] = [];
    const server = await serve((_request, response, nth) => {
      arrivals.push(Date.now());
      if (nth === 1) response.writeHead(503, { 'retry-after': retryAfter() }).end();
      else response.end(content);
    });
    await downloadFrom(server);
    expect((arrivals[1] ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test('with a Retry-After of an hour is not waited for that long', async () => {
    const server = await serve((_request, response, nth) => {
      if (nth === 1) response.writeHead(429, { 'retry-after': '3600' }).end();
      else response.end(content);
    });
    await downloadFrom(server, { limits: { maxRetryAfterMs: 20 } });
    expect(server.requests).toHaveLength(2);
  });
});

describe('a source that speaks otherwise', () => {
  test.each(['gzip', 'GZIP'])('in %s is refused unread', async (encoding) => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(gzipSync(content));
    });
    expect(await failureOf(downloadFrom(server))).toMatchObject({ kind: 'encoding', retryable: false });
    expect(server.requests).toHaveLength(1);
  });

  test('as identity is read', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'identity' }).end(content);
    });
    await downloadFrom(server);
    await expectWholeFile();
  });

  test.each([
    ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['a header that is none', 'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello'],
    ['100,000 bytes of headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
  ])('in %s is refused', async (_what, bytes) => {
    const server = await serveRaw((socket) => socket.end(bytes));
    expect(await failureOf(downloadFrom(server))).toMatchObject({ kind: 'protocol', retryable: false });
  });
});

test('a port without a server is tried three times', async () => {
  const port = await freePort();
  expect(await failureOf(downloadFrom({ port }))).toMatchObject({ kind: 'connect', retryable: true });
});

test.each(['before the answer', 'in the body', 'between two tries'])(
  'an abort %s ends it at once',
  async (when) => {
    const controller = new AbortController();
    const reason = new Error('the job was cancelled');
    const server = await serve((_request, response) => {
      if (when === 'before the answer') controller.abort(reason);
      if (when === 'in the body') response.write(content);
      if (when === 'between two tries') {
        response.writeHead(503).end();
        response.on('close', () => setTimeout(() => controller.abort(reason), 20));
      }
    });
    const attempt = downloadFrom(server, {
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
      limits: { backoffMs: when === 'between two tries' ? 600_000 : 1 },
    });
    await expect(attempt).rejects.toBe(reason);
    expect(await readdir(folder)).toEqual([]);
    expect(server.requests).toHaveLength(1);
  },
);

test('closing breaks off what runs', async () => {
  const server = await serve((_request, response) => response.write(content));
  const outbound = outboundTo(server.port);
  let begun = () => {};
  const started = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const download = outbound.download({
    url: `http://127.0.0.1:${server.port}/`,
    file,
    maxBytes: 1_000_000,
    limits: { tries: 1 },
    onProgress: begun,
  });
  const ended = expect(download).rejects.toBeInstanceOf(OutboundFailed);
  await started;
  await outbound.close();
  await ended;
});

describe('something small read into memory', () => {
  const fetchFrom = ({ port }: { port: number }, maxBytes: number) =>
    outboundTo(port).fetchBytes({ url: `http://127.0.0.1:${port}/`, maxBytes });

  test('arrives whole', async () => {
    const server = await serve((_request, response) => response.end(content));
    expect(sha256(await fetchFrom(server, content.length))).toBe(sha256(content));
  });

  test('is cut off at its limit', async () => {
    const server = await serve((_request, response) => response.end(content));
    await expect(fetchFrom(server, content.length - 1)).rejects.toMatchObject({ kind: 'too-large' });
  });

  test('fails with any status but 200', async () => {
    const server = await serve((_request, response) => response.writeHead(404).end());
    await expect(fetchFrom(server, 10)).rejects.toMatchObject({ kind: 'status', status: 404 });
  });

  test('is refused compressed', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(content));
    });
    await expect(fetchFrom(server, 1_000_000)).rejects.toHaveProperty('kind', 'encoding');
  });
});

describe('room on the disk', () => {
  const MIB = 1024 * 1024;

  /** Notes what is asked for, and how much had been written by then. */
  function roomKeeper() {
    const asked: number[] = [];
    const written: number[] = [];
    const makeRoom = async (bytes: number): Promise<void> => {
      asked.push(bytes);
      written.push((await stat(file)).size);
    };
    return { asked, written, makeRoom };
  }

  test('is made for all that is declared before the first byte, and not again after a break', async () => {
    const server = await serve((request, response, nth) => {
      if (nth === 1) cutAfterHalf(response, { etag: '"one"' });
      else rest(response, request.headers.range, { etag: '"one"' });
    });
    const { asked, written, makeRoom } = roomKeeper();
    await downloadFrom(server, { makeRoom });
    await expectWholeFile();
    expect({ asked, written }).toEqual({ asked: [content.length], written: [0] });
    expect(server.requests).toHaveLength(2);
  });

  test('is made for what comes on top when the file starts anew and is larger', async () => {
    const server = await serve((_request, response, nth) => {
      if (nth === 1) cutAfterHalf(response, {});
      else
        response
          .writeHead(200, { 'content-length': content.length * 2 })
          .end(Buffer.concat([content, content]));
    });
    const { asked, makeRoom } = roomKeeper();
    expect(await downloadFrom(server, { makeRoom })).toMatchObject({ sizeBytes: content.length * 2 });
    expect(asked).toEqual([content.length, content.length]);
  });

  test('is made 64 MiB at a time for a body without a length, and never above the limit', async () => {
    const server = await serve((_request, response) => {
      response.write(Buffer.alloc(70 * MIB));
      response.end();
    });
    const { asked, written, makeRoom } = roomKeeper();
    await downloadFrom(server, { makeRoom, maxBytes: 80 * MIB });
    expect(asked).toEqual([64 * MIB, 16 * MIB]);
    expect(written[0]).toBe(0);
    expect(written[1]).toBeGreaterThan(63 * MIB);
    expect(written[1]).toBeLessThanOrEqual(64 * MIB);
  });

  test.each([
    ['with', { 'content-length': content.length }],
    ['without', {}],
  ])('that cannot be made for a body %s a length ends the download as it is', async (_with, headers) => {
    const server = await serve((_request, response) => {
      response.writeHead(200, headers).write(content);
    });
    const reason = new Error('no room');
    const attempt = downloadFrom(server, { makeRoom: () => Promise.reject(reason) });
    await expect(attempt).rejects.toBe(reason);
    expect(await readdir(folder)).toEqual([]);
    expect(server.requests).toHaveLength(1);
  });

  test('may take its time: it is not the sender that is slow then', async () => {
    const server = await serve((_request, response) => {
      response.write(Buffer.alloc(8 * MIB));
      response.end();
    });
    const makeRoom = () => delay(700);
    const limits = { rateWindowMs: 200, tries: 1 };
    expect(await downloadFrom(server, { makeRoom, limits })).toMatchObject({ sizeBytes: 8 * MIB });
  });
});
