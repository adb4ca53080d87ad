/** Many sources at once, from servers that close or reset each connection behind the body: each arrives whole, and nothing is asked for behind it. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { byRun } from 'soundpost-testing/by-run';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { createOutbound } from '../src/outbound.ts';
import { httpServer } from './hostile-server.ts';

const DOWNLOADS = byRun({ core: 12, all: 1000 });
const AT_ONCE = 20;
const SEED = 17;
const MIN_BYTES = 100_000;
const MAX_BYTES = 5_000_000;

const content = randomBytes(MAX_BYTES);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'many-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** The same in each run (mulberry32), half of them below 0.7 MB. */
function sizes(): number[] {
  let state = SEED;
  return Array.from({ length: DOWNLOADS }, () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    const share = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    return Math.floor(MIN_BYTES * (MAX_BYTES / MIN_BYTES) ** share);
  });
}

/** Sends as many bytes of the content as the path ends with; then closes the connection, or resets it once the last byte has arrived. */
function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { heedsRange, resets }: { heedsRange: boolean; resets: boolean },
): void {
  const size = sizeIn(request);
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  const headers = { etag: `"${size}"`, connection: 'close' };
  if (heedsRange && start >= size) {
    response.writeHead(416, { ...headers, 'content-range': `bytes */${size}` }).end();
    return;
  }
  const from = heedsRange ? start : 0;
  if (heedsRange && request.headers.range !== undefined) {
    response.writeHead(206, {
      ...headers,
      'content-length': size - from,
      'content-range': `bytes ${from}-${size - 1}/${size}`,
    });
  } else {
    response.writeHead(200, { ...headers, 'content-length': size });
  }
  if (!resets) {
    response.end(content.subarray(from, size));
    return;
  }
  const { socket } = response;
  response.write(content.subarray(from, size), async () => {
    if (socket === null) return;
    await until('the last byte has arrived', () => unacknowledgedBytes(socket).then((bytes) => bytes === 0));
    socket.resetAndDestroy();
  });
}

function sizeIn({ url }: IncomingMessage): number {
  return Number(url?.split('/').at(-1));
}

/** A reset discards what the receiver's system has not taken yet (proc(5), tx_queue). */
async function unacknowledgedBytes({ localPort, remotePort }: Socket): Promise<number> {
  const hex = (port = 0): string => port.toString(16).toUpperCase().padStart(4, '0');
  const ends = `:${hex(localPort)} 0100007F:${hex(remotePort)} `;
  const line = (await readFile('/proc/net/tcp', 'latin1')).split('\n').find((text) => text.includes(ends));
  return Number.parseInt(line?.trim().split(/\s+/)[4]?.split(':')[0] ?? '0', 16);
}

it.each([
  ['heeds Range', true],
  ['disregards Range', false],
])('a server that %s is asked once for each, and for nothing behind it', async (_what, heedsRange) => {
  /** The paths whose first answer is reset. */
  const reset = new Set<string>();
  const server = await httpServer((request, response) => {
    const { url = '' } = request;
    const resets = url.startsWith('/reset/') && !reset.has(url);
    if (resets) reset.add(url);
    answer(request, response, { heedsRange, resets });
  });
  const outbound = createOutbound({
    allow: parseAllowRules(`127.0.0.1:${server.port}`),
    ports: [],
    userAgent: 'Soundpost test',
    logger: pino({ level: 'silent' }),
  });
  const failures: unknown[] = [];
  const left = [...sizes().entries()];
  const downloadSome = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [nth, size] = next;
      const file = join(folder, String(nth));
      try {
        const { sizeBytes } = await outbound.downloadParts({
          url: `http://127.0.0.1:${server.port}/${nth % 2 === 0 ? 'closed' : 'reset'}/${nth}/${size}`,
          file,
          maxBytes: MAX_BYTES,
          limits: { backoffMs: 1 },
          // Files as small as these are fetched whole.
          choose: () => Promise.reject(new Error('parts were asked for')),
        });
        expect(sizeBytes).toBe(size);
        expect(content.subarray(0, size).equals(await readFile(file))).toBe(true);
      } catch (error) {
        failures.push({ nth, size, error });
      } finally {
        await rm(file, { force: true });
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, downloadSome));
  } finally {
    await outbound.close();
    await server.close();
  }
  expect(failures).toEqual([]);
  const beyond = server.requests.filter((request) => request.headers.range === `bytes=${sizeIn(request)}-`);
  expect(beyond).toHaveLength(0);
  expect(reset.size).toBe(DOWNLOADS / 2);
  // A reset also discards what has arrived and is not read yet: a slow disk may have such a file asked for once more.
  const closed = server.requests.filter(({ url }) => url?.startsWith('/closed/'));
  expect(closed).toHaveLength(DOWNLOADS / 2);
});
