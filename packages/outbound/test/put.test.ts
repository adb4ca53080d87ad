/** A file on its way to a destination: what arrives, and what each answer means, early or late. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { pino } from 'pino';
import { freePort } from 'soundpost-testing/ports';
import { stubNetwork } from 'soundpost-testing/stub-network';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundFailed, OutboundRefused } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';
import { type HostileServer, httpServer, tcpServer } from './hostile-server.ts';

type Handler = Parameters<typeof httpServer>[0];

const MIB = 1024 * 1024;
let server: HostileServer;
let outbound: Outbound;
let handle: Handler;

const outboundTo = (port: number): Outbound =>
  createOutbound({
    allow: parseAllowRules(`127.0.0.1:${port}`),
    ports: [],
    userAgent: 'Soundpost test',
    logger: pino({ level: 'silent' }),
  });

beforeEach(async () => {
  server = await httpServer((request, response, nth) => handle(request, response, nth));
  outbound = outboundTo(server.port);
});
afterEach(async () => {
  await outbound.close();
  await server.close();
});

/** So many bytes, made as they are read. */
function bytesOf(sizeBytes: number, onRead: (bytes: number) => void = () => undefined): Readable {
  const chunk = Buffer.alloc(64 * 1024, 'soundpost ');
  return Readable.from(
    (function* () {
      for (let left = sizeBytes; left > 0; left -= chunk.length) {
        const piece = chunk.subarray(0, Math.min(left, chunk.length));
        onRead(piece.length);
        yield piece;
      }
    })(),
    { objectMode: false },
  );
}

async function digestOf(request: Readable): Promise<{ sizeBytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for await (const chunk of request) {
    hash.update(chunk);
    sizeBytes += chunk.length;
  }
  return { sizeBytes, sha256: hash.digest('hex') };
}

type Options = Partial<Parameters<Outbound['put']>[0]>;

/** For a server that is known to answer: this process may stand still for longer than a file is held back. */
const PATIENT: Options = { idleMs: 60_000 };

const put = (sizeBytes: number, options: Options = {}, through = outbound, port = server.port) =>
  through.put({
    purpose: 'destination',
    url: `http://127.0.0.1:${port}/bucket/talk.mp3?signature=abc`,
    headers: {},
    body: bytesOf(sizeBytes),
    sizeBytes,
    idleMs: 5_000,
    ...options,
  });

describe('what is put', () => {
  test.each([
    ['nothing', 0],
    ['a little', 100_000],
    ['more than is asked for first', 5 * MIB + 3],
  ])('arrives whole: %s', async (_what, sizeBytes) => {
    let arrived: ReturnType<typeof digestOf> | undefined;
    handle = async (request, response) => {
      arrived = digestOf(request);
      await arrived;
      response.writeHead(201).end();
    };
    const answer = await put(sizeBytes, {
      headers: { 'Content-Type': 'audio/mpeg', 'x-ms-blob-type': 'BlockBlob' },
    });
    expect(answer.status).toBe(201);
    expect(await arrived).toEqual(await digestOf(bytesOf(sizeBytes)));
    expect(server.requests[0]).toMatchObject({ method: 'PUT', url: '/bucket/talk.mp3?signature=abc' });
    expect(server.requests[0]?.headers).toMatchObject({
      'content-length': String(sizeBytes),
      'content-type': 'audio/mpeg',
      'x-ms-blob-type': 'BlockBlob',
      'user-agent': 'Soundpost test',
    });
  });

  test('is sent also to a server that does not know Expect', async () => {
    const silent = await tcpServer((socket, first) => {
      // No 100 follows its head. Of the body something may have come with it.
      let received = first.length - (first.indexOf('\r\n\r\n') + 4);
      socket.on('data', (chunk) => {
        received += chunk.length;
        if (received >= 2 * MIB) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      });
    });
    const through = outboundTo(silent.port);
    try {
      expect(await put(2 * MIB, {}, through, silent.port)).toMatchObject({ status: 200 });
    } finally {
      await through.close();
      await silent.close();
    }
  });

  test('is sent without Expect to a server that refuses it', async () => {
    const expectations: (string | undefined)[] = [];
    handle = async (request, response) => {
      expectations.push(request.headers.expect);
      const { sizeBytes } = await digestOf(request);
      response.writeHead(sizeBytes === 2 * MIB ? 200 : 500).end();
    };
    const refusing = await expectationServer((request, response) => {
      expectations.push(request.headers.expect);
      response.writeHead(417).end();
    }, handle);
    const through = outboundTo(refusing.port);
    try {
      expect(await put(2 * MIB, PATIENT, through, refusing.port)).toMatchObject({ status: 200 });
      expect(expectations).toEqual(['100-continue', undefined]);
    } finally {
      await through.close();
      await refusing.close();
    }
  });

  test.each([
    ['shorter', 4],
    ['longer', 6],
  ])('that is %s than it was said to be is broken off', async (_what, sizeBytes) => {
    let isWhole = false;
    handle = async (request, response) => {
      isWhole = await digestOf(request).then(
        () => true,
        () => false,
      );
      response.end();
    };
    await expect(put(5, { body: bytesOf(sizeBytes) })).rejects.toMatchObject({
      kind: 'protocol',
      retryable: false,
    });
    expect(isWhole).toBe(false);
  });

  test('ends with what its reading fails with', async () => {
    handle = (request) => void digestOf(request).catch(() => undefined);
    const failure = new Error('the disk is gone');
    const body = Readable.from(
      (async function* () {
        yield Buffer.alloc(1000);
        throw failure;
      })(),
      { objectMode: false },
    );
    await expect(put(5000, { body })).rejects.toBe(failure);
    expect(body.destroyed).toBe(true);
  });
});

/** Answers those who ask first by `expected`, the others by `handle`. */
async function expectationServer(expected: Handler, handler: Handler) {
  const { createServer } = await import('node:http');
  const own = createServer((request, response) => handler(request, response, 0)).on(
    'checkContinue',
    (request, response) => expected(request, response, 0),
  );
  own.listen(0, '127.0.0.1');
  await once(own, 'listening');
  return {
    port: (own.address() as { port: number }).port,
    async close() {
      own.closeAllConnections();
      own.close();
      await once(own, 'close');
    },
  };
}

describe('the answer', () => {
  test.each([
    ['costs nothing: the file is not read', 0],
    ['is seen although this process stood still', 1200],
  ])('before anything was sent %s', async (_what, standsStillMs) => {
    const refusing = await expectationServer(
      (_request, response) => {
        if (standsStillMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, standsStillMs);
        response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
      },
      (_request, response) => response.writeHead(500).end(),
    );
    const through = outboundTo(refusing.port);
    let readBytes = 0;
    try {
      const body = bytesOf(8 * MIB, (bytes) => {
        readBytes += bytes;
      });
      expect(await put(8 * MIB, { body, ...PATIENT }, through, refusing.port)).toMatchObject({ status: 403 });
      expect(readBytes).toBe(0);
      expect(body.destroyed).toBe(true);
    } finally {
      await through.close();
      await refusing.close();
    }
  });

  test('in the middle ends the sending, and is told', async () => {
    handle = (request: IncomingMessage, response) => {
      let received = 0;
      request.on('data', (chunk) => {
        received += chunk.length;
        if (received > MIB && !response.headersSent) {
          // As servers do that want their answer read: what still comes is read on, where Node would close behind the answer.
          response.writeHead(403, { connection: 'close', 'content-length': 6 }).write('denied');
        }
      });
    };
    let readBytes = 0;
    const body = bytesOf(500 * MIB, (bytes) => {
      readBytes += bytes;
    });
    expect(await put(500 * MIB, { body })).toMatchObject({ status: 403, bodySnippet: 'denied' });
    expect(readBytes).toBeLessThan(100 * MIB);
  });

  test('of 2xx before the end ends nothing: the rest is sent', async () => {
    let arrived: ReturnType<typeof digestOf> | undefined;
    handle = (request, response) => {
      response.writeHead(200).flushHeaders();
      arrived = digestOf(request);
      arrived.then(() => response.end()).catch(() => undefined);
    };
    expect(await put(3 * MIB)).toMatchObject({ status: 200 });
    expect(await arrived).toMatchObject({ sizeBytes: 3 * MIB });
  });

  test.each([301, 302, 307, 308])('%i is told and not followed', async (status) => {
    handle = (request, response) => {
      request.resume();
      response.writeHead(status, { location: `http://127.0.0.1:${server.port}/elsewhere` }).end();
    };
    expect(await put(1000)).toMatchObject({ status });
    expect(server.requests).toHaveLength(1);
  });

  test('503 is told with its Retry-After', async () => {
    handle = (request, response) => {
      request.resume();
      response.writeHead(503, { 'retry-after': '7' }).end();
    };
    expect(await put(1000)).toMatchObject({ status: 503, retryAfterSeconds: 7 });
  });
});

describe('a put', () => {
  test('that is reset in the middle fails, and may go better', async () => {
    handle = (request) => {
      let received = 0;
      request.on('data', (chunk) => {
        received += chunk.length;
        if (received > MIB) request.socket.resetAndDestroy();
      });
    };
    await expect(put(100 * MIB)).rejects.toMatchObject({ kind: 'reset', retryable: true });
  });

  test('of which nothing more is taken is given up, however much was taken before', async () => {
    handle = (request) => void request.once('data', () => request.pause());
    await expect(put(200 * MIB, { idleMs: 300 })).rejects.toMatchObject({ kind: 'timeout', retryable: true });
  });

  test('that is taken slowly takes as long as it takes', async () => {
    // Each piece is taken well within the limit, all of them together are not.
    handle = (request, response) => {
      let received = 0;
      request.on('data', (chunk) => {
        const before = Math.floor(received / MIB);
        received += chunk.length;
        if (Math.floor(received / MIB) === before) return;
        request.pause();
        setTimeout(() => request.resume(), 230);
      });
      request.on('end', () => response.writeHead(200).end());
    };
    expect(await put(12 * MIB, { idleMs: 2000 })).toMatchObject({ status: 200 });
  });

  test('whose answer does not come is given up', async () => {
    handle = (request) => void request.resume();
    await expect(put(1000, { idleMs: 200 })).rejects.toMatchObject({ kind: 'timeout' });
  });

  test('ends with the reason of its signal', async () => {
    const controller = new AbortController();
    const reason = new Error('the files were erased');
    handle = (request) => void request.once('data', () => controller.abort(reason));
    await expect(put(100 * MIB, { signal: controller.signal })).rejects.toBe(reason);
  });

  test('goes over a connection of its own', async () => {
    const ports = new Set<number | undefined>();
    handle = (request, response) => {
      ports.add(request.socket.remotePort);
      request.resume();
      response.end();
    };
    await put(10);
    await put(10);
    expect(ports.size).toBe(2);
  });
});

describe('an address', () => {
  test.each([
    ['that is not public', 'https://10.0.0.1/bucket'],
    ['of http that no rule opens', 'http://bucket.example.com/talk.mp3'],
    ['on a port that is not open', 'https://bucket.example.com:9000/talk.mp3'],
    ['with credentials', 'https://key:secret@bucket.example.com/talk.mp3'],
    ['that is none', 'bucket/talk.mp3'],
  ])('%s is refused, and nothing is connected to', async (_what, url) => {
    const { outbound: stubbed, connections } = stubNetwork();
    await expect(put(10, { url }, stubbed)).rejects.toBeInstanceOf(OutboundRefused);
    expect(connections).toEqual([]);
  });

  test('that nobody listens at cannot be reached', async () => {
    const port = await freePort();
    const through = outboundTo(port);
    await expect(put(10, {}, through, port)).rejects.toBeInstanceOf(OutboundFailed);
    await through.close();
  });
});
