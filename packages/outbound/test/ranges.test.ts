/** Parts of a source, and the whole of it when parts are not to be had. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { type RangeServer, serveRanges } from 'soundpost-testing/range-server';
import { stubNetwork } from 'soundpost-testing/stub-network';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { OutboundFailed, OutboundRefused } from '../src/errors.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';

type Options = Parameters<Outbound['downloadParts']>[0];
type Parts = Parameters<Options['choose']>[0];

const MIB = 1024 * 1024;
const content = randomBytes(2 * MIB);
/** So that the whole takes a second. */
const SLOW = { bytesPerSecond: 2 * MIB };
/** So slow that no gap is cheaper fetched along, even where this process stood still and took that for the length of a round trip. */
const SLOWER = { bytesPerSecond: 400 * 1024 };

let folder: string;
let file: string;
let closers: (() => Promise<void>)[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outbound-ranges-'));
  file = join(folder, 'local');
  await writeFile(join(folder, 'video.mp4'), content);
  closers = [() => rm(folder, { recursive: true })];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
});

async function serve(options: Parameters<typeof serveRanges>[1] = {}): Promise<RangeServer> {
  const server = await serveRanges(folder, { ...SLOW, ...options });
  closers.push(server.close);
  return server;
}

function outboundTo(server: RangeServer): Outbound {
  const allow = parseAllowRules(server.allow);
  const logger = pino({ level: 'silent' });
  const outbound = createOutbound({ allow, ports: [], userAgent: 'Soundpost test', logger });
  closers.push(() => outbound.close());
  return outbound;
}

function downloadParts(server: RangeServer, options: Partial<Options> = {}) {
  return outboundTo(server).downloadParts({
    ...{ url: server.url('video.mp4'), file, maxBytes: 4 * MIB, minBytes: 1, choose: chooseWanted },
    // A busy machine makes each round trip long, and parts of a small file not worth it.
    leastGain: -1000,
    ...options,
    limits: { backoffMs: 1, ...options.limits },
  });
}

/** Small stretches far apart, as a track lies in a video. */
const wanted = Array.from({ length: 40 }, (_, nth) => ({
  start: 300_000 + nth * 40_000,
  end: 300_500 + nth * 40_000,
}));
const spans = {
  starts: Float64Array.from(wanted, ({ start }) => start),
  ends: Float64Array.from(wanted, ({ end }) => end),
};

async function chooseWanted(parts: Parts): Promise<boolean> {
  await parts.read(0, 1000);
  return parts.fetch(spans);
}

async function expectWhole(): Promise<void> {
  expect((await readFile(file)).equals(content)).toBe(true);
}

/** That nothing was left but the source itself. */
async function expectNothing(): Promise<void> {
  expect(await readdir(folder)).toEqual(['video.mp4']);
}

describe('parts', () => {
  it.each([
    ['several ranges in an answer', true, 8],
    ['one range in an answer', false, 60],
  ])('come to their places: %s', async (_name, severalRanges, maxRequests) => {
    const server = await serve({ severalRanges, ...SLOWER });
    const downloaded = await downloadParts(server);
    expect(downloaded).toMatchObject({
      sizeBytes: content.length,
      filename: 'video.mp4',
      contentType: 'video/mp4',
    });
    expect(downloaded.partBytes).toBeLessThan(MIB);
    const local = await readFile(file);
    expect(local.length).toBe(content.length);
    for (const { start, end } of [{ start: 0, end: 1000 }, ...wanted]) {
      expect(local.subarray(start, end).equals(content.subarray(start, end))).toBe(true);
    }
    const { mode, blocks } = await stat(file);
    expect(mode & 0o777).toBe(0o600);
    expect(blocks * 512).toBeLessThan(content.length / 2);
    expect(server.ranges.length).toBeLessThanOrEqual(maxRequests);
    expect(server.peakConnections).toBeLessThanOrEqual(16);
    expect(server.sentBytes).toBeLessThan(content.length / 2);
  });

  it('are read from wherever they lie', async () => {
    const server = await serve();
    const places = [0, 100, 250_000, 1_500_000, 1_500_700, content.length - 10, content.length - 1];
    await downloadParts(server, {
      async choose(parts) {
        for (const at of places) {
          const end = Math.min(at + 5000, content.length);
          expect(Buffer.from(await parts.read(at, end)).equals(content.subarray(at, end))).toBe(true);
        }
        return true;
      },
    });
    const local = await readFile(file);
    for (const at of places) {
      const end = Math.min(at + 5000, content.length);
      expect(local.subarray(at, end).equals(content.subarray(at, end))).toBe(true);
    }
  });

  it.each([
    ['several in an answer', {}, 6],
    ['one in an answer', { severalRanges: false }, 16],
  ])('are read many at once, in any order and over one another: %s', async (_how, options, connections) => {
    const server = await serve({ ...options, ...SLOWER });
    const stretches = [
      ...wanted,
      { start: 0, end: 2000 },
      { start: content.length - 16, end: content.length },
      { start: 900_000, end: 905_000 },
      { start: 904_000, end: 904_001 },
    ].reverse();
    const expected = stretches.map(({ start, end }) => content.subarray(start, end).toString('hex'));
    const readTwice = async (parts: Parts): Promise<boolean> => {
      await parts.read(0, 1000);
      for (const round of [1, 2]) {
        const chunks = (await parts.readEach(stretches)) ?? [];
        expect(chunks.map((chunk) => Buffer.from(chunk).toString('hex'))).toEqual(expected);
        expect(parts.roundTripBytes, `round ${round}`).toBeGreaterThan(0);
      }
      return true;
    };
    await downloadParts(server, { choose: readTwice });
    expect(server.peakConnections).toBeLessThanOrEqual(connections + 1);
    expect(server.sentBytes).toBeLessThan(content.length / 2);
    const local = await readFile(file);
    for (const { start, end } of stretches)
      expect(local.subarray(start, end).equals(content.subarray(start, end))).toBe(true);
  });

  it('are asked for once, whoever wants them again', async () => {
    const server = await serve();
    const again = async (parts: Parts): Promise<boolean> => {
      await parts.readEach(wanted);
      const before = server.ranges.length;
      expect(await parts.fetch(spans)).toBe(true);
      expect(server.ranges.length).toBe(before);
      return true;
    };
    await downloadParts(server, { choose: again });
  });

  it('are read many at once from the first answer where they lie near its beginning', async () => {
    const server = await serve();
    const stretches = [
      { start: 100_000, end: 100_010 },
      { start: 10, end: 50 },
    ];
    await downloadParts(server, {
      async choose(parts) {
        const chunks = (await parts.readEach(stretches)) ?? [];
        for (const [nth, { start, end }] of stretches.entries())
          expect(content.subarray(start, end).equals(chunks[nth] ?? Buffer.alloc(0))).toBe(true);
        return false;
      },
    });
    expect(server.ranges).toEqual(['bytes=0-']);
    await expectWhole();
  });

  it('are not read many at once where the whole file would come nearly as quickly', async () => {
    const most = [
      { start: 0, end: 1_800_000 },
      { start: 1_900_000, end: 2_000_000 },
    ];
    let chunks: unknown = 'not asked';
    await downloadParts(await serve(), {
      leastGain: 0.3,
      async choose(parts) {
        chunks = await parts.readEach(most);
        return chunks !== undefined;
      },
    });
    expect(chunks).toBeUndefined();
    await expectWhole();
  });

  it('tell how much of what is wanted has come', async () => {
    const steps: { receivedBytes: number; totalBytes: number | undefined }[] = [];
    await downloadParts(await serve(), { onProgress: (step) => steps.push(step) });
    const last = steps.at(-1);
    expect(last?.receivedBytes).toBe(last?.totalBytes);
    expect(steps.length).toBeGreaterThan(1);
  });

  it('claim room for the blocks that they take, and the whole file for what is missing then', async () => {
    const rooms: number[] = [];
    const makeRoom = async (bytes: number): Promise<void> => {
      rooms.push(bytes);
    };
    await downloadParts(await serve(), { makeRoom });
    const forParts = rooms.reduce((sum, bytes) => sum + bytes, 0);
    expect(forParts).toBeGreaterThanOrEqual((await stat(file)).blocks * 512);
    expect(forParts).toBeLessThan(MIB);
    await rm(file);
    rooms.length = 0;
    const choose = async (parts: Parts): Promise<boolean> => (await chooseWanted(parts)) && false;
    await downloadParts(await serve(), { makeRoom, choose });
    expect(rooms.reduce((sum, bytes) => sum + bytes, 0)).toBe(content.length);
  });

  it('are asked for only of the version that the first answer named', async () => {
    const conditions: unknown[] = [];
    const server = await serve({
      intercept(request) {
        if (isLater(request)) conditions.push(request.headers['if-range']);
        return false;
      },
    });
    await downloadParts(server);
    expect(conditions.length).toBeGreaterThan(0);
    expect(conditions.filter((condition) => !/^"[^"]+"$/.test(String(condition)))).toEqual([]);
  });

  it('are asked for once more after a break', async () => {
    let broken = 0;
    const server = await serve({
      intercept(request, response) {
        if (!isLater(request) || broken >= 2) return false;
        broken += 1;
        response.destroy();
        return true;
      },
    });
    expect((await downloadParts(server)).partBytes).toBeDefined();
    expect(broken).toBe(2);
  });
});

/** Not the first request, which asks for everything from the first byte on. */
const isLater = ({ headers }: IncomingMessage): boolean =>
  headers.range !== undefined && headers.range !== 'bytes=0-';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Plays another server for every request for a part. */
function partsAnswered(answer: Answer) {
  return {
    intercept(request: IncomingMessage, response: ServerResponse): boolean {
      if (!isLater(request)) return false;
      answer(request, response);
      return true;
    },
  };
}

function partial(range: string, bytes: Buffer, headers: Record<string, string> = {}): Answer {
  return (_request, response) => response.writeHead(206, { 'content-range': range, ...headers }).end(bytes);
}

const [{ start = 0, end = 0 } = {}] = wanted;
const exact = `bytes ${start}-${end - 1}/${content.length}`;
const one = { starts: Float64Array.of(start), ends: Float64Array.of(end) };

/** For what is fetched whole. */
const serveFast = (options: Parameters<typeof serve>[0] = {}): Promise<RangeServer> =>
  serve({ bytesPerSecond: 16 * MIB, ...options });

/** Where parts are not to be had, and how many requests it takes to have the whole. */
const FALLBACKS: readonly [string, () => Promise<RangeServer>, Partial<Options>, number | null][] = [
  ['a server without ranges', () => serveFast({ ranges: false }), {}, 1],
  ['a file too small to bother', () => serveFast(), { minBytes: 4 * MIB }, 1],
  ['a reader who wants everything, soon', () => serveFast(), { choose: async () => false }, 1],
  [
    'a reader who wants everything, after a look',
    () => serveFast(),
    { choose: async (parts) => (await parts.read(0, 70_000)).length === 0 },
    1,
  ],
  [
    'a reader who wants everything, late',
    () => serveFast(),
    { choose: async (parts) => (await chooseWanted(parts)) && false },
    null,
  ],
  [
    'parts that are most of the file',
    () => serveFast(),
    {
      leastGain: 0.3,
      choose: (parts) =>
        parts.fetch({ starts: Float64Array.of(0, 1_900_000), ends: Float64Array.of(1_800_000, 2_000_000) }),
    },
    null,
  ],
  [
    'a first answer of a part only',
    () =>
      serveFast({
        intercept: (request, response) =>
          request.headers.range === 'bytes=0-' &&
          !!response
            .writeHead(206, { 'content-range': `bytes 0-99/${content.length}`, etag: '"a"' })
            .end(content.subarray(0, 100)),
      }),
    {},
    2,
  ],
  [
    'a refusal of the first range',
    () =>
      serveFast({
        intercept: (request, response) =>
          request.headers.range === 'bytes=0-' && !!response.writeHead(416).end(),
      }),
    {},
    2,
  ],
  [
    'a version that cannot be told',
    () =>
      serveFast({
        intercept: (request, response) =>
          request.headers.range === 'bytes=0-' &&
          !!response
            .writeHead(206, {
              'content-range': `bytes 0-${content.length - 1}/${content.length}`,
              etag: 'W/"a"',
            })
            .end(content),
      }),
    {},
    1,
  ],
  [
    'another version, sent whole',
    () =>
      serveFast({
        ...partsAnswered((_request, response) => response.writeHead(200, { etag: '"other"' }).end(content)),
      }),
    {},
    null,
  ],
  [
    'another version, sent in parts all the same',
    () => serveFast(partsAnswered(partial(exact, content.subarray(start, end), { etag: '"other"' }))),
    { choose: (parts) => parts.fetch(one) },
    null,
  ],
  [
    'parts of a file of another size',
    () => serveFast(partsAnswered(partial(exact.replace(/\d+$/, '3'), content.subarray(start, end)))),
    { choose: (parts) => parts.fetch(one) },
    null,
  ],
  [
    'parts of another place',
    () => serveFast(partsAnswered(partial(`bytes 0-499/${content.length}`, content.subarray(0, 500)))),
    { choose: (parts) => parts.fetch(one) },
    null,
  ],
  [
    'parts that are too long',
    () => serveFast(partsAnswered(partial(exact, content.subarray(start, end + 1)))),
    { choose: (parts) => parts.fetch(one) },
    null,
  ],
  [
    'parts that are too short',
    () => serveFast(partsAnswered(partial(exact, content.subarray(start, end - 1)))),
    { choose: (parts) => parts.fetch(one) },
    null,
  ],
  [
    'compressed parts',
    () =>
      serveFast(partsAnswered(partial(exact, content.subarray(start, end), { 'content-encoding': 'gzip' }))),
    { choose: (parts) => parts.fetch(one) },
    null,
  ],
  [
    'several parts that are others',
    () =>
      serveFast(
        partsAnswered((_request, response) =>
          response
            .writeHead(206, { 'content-type': 'multipart/byteranges; boundary=B' })
            .end(`--B\r\nContent-Range: bytes 0-0/${content.length}\r\n\r\na\r\n--B--`),
        ),
      ),
    {},
    null,
  ],
  [
    'parts that are forbidden',
    () => serveFast(partsAnswered((_request, response) => response.writeHead(403).end())),
    {},
    null,
  ],
  [
    'parts that fail again and again',
    () => serveFast(partsAnswered((_request, response) => response.writeHead(503).end())),
    {},
    null,
  ],
  [
    'parts that break off again and again',
    () => serveFast(partsAnswered((_request, response) => response.destroy())),
    {},
    null,
  ],
  [
    'parts that never come',
    () => serveFast(partsAnswered(() => undefined)),
    { limits: { headersTimeoutMs: 1500, tries: 1 } },
    null,
  ],
  [
    'parts that drip',
    () =>
      serveFast(
        partsAnswered(
          (_request, response) => void response.writeHead(206, { 'content-range': exact }).write('a'),
        ),
      ),
    { choose: (parts) => parts.fetch(one), limits: { rateWindowMs: 1500, tries: 1 } },
    null,
  ],
  [
    'parts that are sent to an address that is not allowed',
    () =>
      serveFast(
        partsAnswered((_request, response) =>
          response.writeHead(302, { location: 'http://10.0.0.1/' }).end(),
        ),
      ),
    {},
    null,
  ],
];

describe('the whole comes without the caller noticing', () => {
  it.each(FALLBACKS)('%s', async (_name, start, options, requests) => {
    const server = await start();
    const downloaded = await downloadParts(server, options);
    expect(downloaded).toMatchObject({
      sizeBytes: content.length,
      filename: 'video.mp4',
      partBytes: undefined,
    });
    await expectWhole();
    if (requests !== null) expect(server.ranges.length).toBe(requests);
  });

  it('and several ranges are asked for one by one where they are refused', async () => {
    const server = await serve({
      intercept(request, response) {
        if (!request.headers.range?.includes(',')) return false;
        response.writeHead(416).end();
        return true;
      },
    });
    expect((await downloadParts(server)).partBytes).toBeDefined();
  });

  it('when many small answers together come too slowly', async () => {
    const server = await serve({
      intercept(request, response) {
        if (!isLater(request)) return false;
        if (request.headers.range?.includes(',')) response.writeHead(416).end();
        else setTimeout(() => response.destroy(), 150);
        return true;
      },
    });
    await downloadParts(server, { limits: { rateWindowMs: 300, tries: 1000 } });
    await expectWhole();
  });
});

describe('what is no fault of the parts', () => {
  it('is passed on: an error of the reader', async () => {
    const choose = async (parts: Parts): Promise<boolean> => {
      await chooseWanted(parts);
      throw new Error('the disk is full');
    };
    await expect(downloadParts(await serve(), { choose })).rejects.toThrow('the disk is full');
    await expectNothing();
  });

  it('is passed on: an abort', async () => {
    const controller = new AbortController();
    const choose = async (parts: Parts): Promise<boolean> => {
      await parts.read(0, 1000);
      controller.abort(new Error('cancelled'));
      return parts.fetch(spans);
    };
    await expect(downloadParts(await serve(), { choose, signal: controller.signal })).rejects.toThrow(
      'cancelled',
    );
    await expectNothing();
  });

  it('is passed on: no room', async () => {
    const makeRoom = async (): Promise<void> => {
      throw new Error('no room');
    };
    await expect(downloadParts(await serve(), { makeRoom })).rejects.toThrow('no room');
    await expectNothing();
  });

  it('is passed on: a file that is too large, whatever little of it is wanted', async () => {
    const server = await serve();
    const failure = await downloadParts(server, { maxBytes: content.length - 1 }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ name: 'OutboundFailed', kind: 'too-large' });
    expect(failure).toBeInstanceOf(OutboundFailed);
    expect(server.ranges.length).toBe(1);
    await expectNothing();
  });

  it('is passed on: a file that is not there, after one request', async () => {
    const server = await serve();
    const failure = downloadParts(server, { url: server.url('none.mp4') });
    await expect(failure).rejects.toMatchObject({ kind: 'status', status: 404 });
    expect(server.ranges.length).toBe(1);
    await expectNothing();
  });

  it('is passed on: time that has run out', async () => {
    const server = await serve(partsAnswered(() => undefined));
    await expect(downloadParts(server, { limits: { totalMs: 1500 } })).rejects.toThrow('took too long');
    await expectNothing();
  });
});

describe('the guard', () => {
  it('looks at the address of every connection, also of one for a part', async () => {
    const server = await serve();
    const network = stubNetwork({
      names: { 'videos.example': [['93.184.215.14'], ['127.0.0.1']] },
      serverPort: Number(server.allow.split(':')[1]),
    });
    closers.push(() => network.outbound.close());
    const download = network.outbound.downloadParts({
      ...{
        url: 'http://videos.example/video.mp4',
        file,
        maxBytes: 4 * MIB,
        minBytes: 1,
        choose: chooseWanted,
      },
    });
    // The name leads elsewhere by the time that parts are asked for, and so it does for the whole.
    await expect(download).rejects.toBeInstanceOf(OutboundRefused);
    expect(network.connections.map(({ addresses }) => addresses)).toEqual([['93.184.215.14']]);
    await expectNothing();
  });
});
