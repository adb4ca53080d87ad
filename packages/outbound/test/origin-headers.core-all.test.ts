/**
 * Headers of a source (decisions A2) go to its origin alone, and not again once a chain of
 * redirects has left it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { byRun } from 'soundpost-testing/by-run';
import { type Random, seeded } from 'soundpost-testing/random';
import { type StubNetwork, stubNetwork } from 'soundpost-testing/stub-network';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { originHeaders, stillAllowed } from '../src/origin-headers.ts';
import { type HostileServer, httpServer } from './hostile-server.ts';

const CANARY = 'Bearer CANARY5d41402abc4b2a76b9719d911017c592';
const HEADERS = { Authorization: CANARY, 'X-Zoom': CANARY };
const HOME = 'http://home.example';
/** Each but the first differs in one part of the origin; the second only in what does not count. */
const PLACES = [HOME, 'http://HOME.example.:80', 'http://home.example:8080', 'http://other.example'];
const ABROAD = [...PLACES, 'http://sub.home.example', 'https://home.example', 'https://other.example'];
const isHome = (place: string): boolean => PLACES.indexOf(place) < 2 && PLACES.includes(place);

/** Which requests of a chain may carry the headers. */
function allowed(chain: readonly string[]): boolean[] {
  const away = chain.findIndex((place) => !isHome(place));
  return chain.map((_, nth) => away === -1 || nth < away);
}

describe('the rule', () => {
  it('holds for every chain of three', () => {
    const own = originHeaders(`${HOME}/talk.mp4`, HEADERS);
    for (const one of ABROAD) {
      for (const other of ABROAD) {
        const chain = [HOME, one, other];
        let left = own;
        const carried = chain.map((place) => {
          left = stillAllowed(left, new URL(`${place}/x`));
          return left !== undefined;
        });
        expect(carried, chain.join(' → ')).toEqual(allowed(chain));
      }
    }
  });

  it('without headers there is nothing to carry', () => {
    expect(originHeaders(`${HOME}/x`, undefined)).toBeUndefined();
    expect(stillAllowed(undefined, new URL(HOME))).toBeUndefined();
  });
});

const chains = byRun({ core: 12, all: 200 });
/** So long that its end is asked for by a range. */
const content = Buffer.alloc(600 * 1024, 'sound');
let server: HostileServer;
let network: StubNetwork;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outbound-origin-'));
  // `/2?a|b|c`: the third place of a chain, which redirects to the next; the last one has the
  // file, in ranges too.
  server = await httpServer((request, response) => {
    const [path = '', query = ''] = (request.url ?? '').slice(1).split('?');
    const places = decodeURIComponent(query).split('|');
    const next = places[Number(path) + 1];
    if (next !== undefined) {
      response.writeHead(302, { location: `${next}/${Number(path) + 1}?${query}` }).end();
      return;
    }
    const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    if (start === undefined) return response.writeHead(200, { etag: '"1"' }).end(content);
    const body = content.subarray(Number(start), end ? Number(end) + 1 : undefined);
    const range = `bytes ${start}-${Number(start) + body.length - 1}/${content.length}`;
    return response.writeHead(206, { etag: '"1"', 'content-range': range }).end(body);
  });
  network = stubNetwork({ serverPort: server.port });
});
afterAll(async () => {
  await network.outbound.close();
  await server.close();
  await rm(folder, { recursive: true });
});

/** A chain that starts at home, at most five redirects, never from https to http. */
function chainOf(random: Random): string[] {
  const chain = [HOME];
  for (let left = random.below(5) + 1; left > 0; left--) {
    const isTls = chain.at(-1)?.startsWith('https') === true;
    chain.push(random.pick(isTls ? ABROAD.filter((place) => place.startsWith('https')) : ABROAD));
  }
  return chain;
}

/** What each request carried, by its place in the chain. */
const carried = (): [nth: number, isCarried: boolean, range: string | undefined][] =>
  server.requests.map(({ url = '', headers, rawHeaders }) => [
    Number(url.slice(1).split('?')[0]),
    rawHeaders.some((text) => text.includes('CANARY')),
    headers.range,
  ]);

it(`of ${chains} chains none takes them elsewhere, nor do the ranges and pieces after it`, async () => {
  const random = seeded(39);
  let kept = 0;
  for (let nth = 0; nth < chains; nth++) {
    const chain = nth === 0 ? [HOME, 'http://other.example', HOME] : chainOf(random);
    const url = `${HOME}/0?${encodeURIComponent(chain.join('|'))}`;
    const headers = originHeaders(url, HEADERS);
    server.requests.length = 0;
    const file = join(folder, `file-${nth}`);
    const { originHeaders: left } = await network.outbound.downloadParts({
      ...{ url, originHeaders: headers, file, maxBytes: content.length, minBytes: 1, leastGain: -1000 },
      async choose(parts) {
        await parts.read(content.length - 1000, content.length - 500);
        return false;
      },
    });
    // A piece of a stream, at any place of the chain.
    const piece = `${chain.at(-1)}/0?${encodeURIComponent(chain.toReversed().join('|'))}`;
    const requestsBefore = server.requests.length;
    const mayCarry = allowed(chain);
    expect(left !== undefined, chain.join(' → ')).toBe(mayCarry.at(-1));
    for (const [place, isCarried] of carried()) {
      expect(isCarried, `${place} of ${chain.join(' → ')}`).toBe(mayCarry[place]);
      kept += isCarried ? 1 : 0;
    }
    const backwards = chain.toReversed();
    if (backwards.some((place, at) => place.startsWith('https') && backwards[at + 1]?.startsWith('http:')))
      continue;
    const signal = new AbortController().signal;
    await network.outbound.fetchPieces(
      { maxBytes: content.length, signal, originHeaders: headers },
      (fetch) =>
        fetch({ url: piece, maxBytes: content.length, signal }, async ({ bytes }) => {
          for await (const _ of bytes);
        }),
    );
    const ofPiece = carried().slice(requestsBefore);
    expect(
      ofPiece.map(([, isCarried]) => isCarried),
      backwards.join(' → '),
    ).toEqual(allowed(backwards));
  }
  expect(kept).toBeGreaterThan(0);
}, 240_000);

it('takes the place of our own headers, whatever the case of its name, but never asks for a compressed body', async () => {
  server.requests.length = 0;
  const url = `${HOME}/0?${encodeURIComponent(HOME)}`;
  const headers = originHeaders(url, {
    'USER-AGENT': 'theirs',
    Accept: 'video/*',
    'Accept-Encoding': 'gzip',
  });
  await network.outbound.download({
    url,
    originHeaders: headers,
    file: join(folder, 'agent'),
    maxBytes: content.length,
  });
  const names = server.requests[0]?.rawHeaders
    .filter((_, at) => at % 2 === 0)
    .map((name) => name.toLowerCase());
  expect(server.requests[0]?.headers).toMatchObject({
    ...{ 'user-agent': 'theirs', accept: 'video/*', 'accept-encoding': 'identity' },
  });
  expect(names?.filter((name) => name === 'user-agent')).toHaveLength(1);
});
