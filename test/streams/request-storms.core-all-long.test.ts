/** What a job sends to somebody's server, whatever its playlist or manifest says (decisions A6). */
import { createCipheriv } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { ServiceError } from 'soundpost-contract/errors';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import type { AdmitStreamRequest } from 'soundpost-media/source-request';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { createOutbound, type Outbound } from 'soundpost-outbound/outbound';
import { rowsOfRun } from 'soundpost-testing/by-run';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StreamRequests } from '../../src/jobs/stream-requests.ts';
import { JumpClock, mostWithin } from '../jobs/jump-clock.ts';
import { logger, makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { type RequestStorm, requestStorms, STORM_KEY } from './request-storms.ts';
import { extract, placeStream } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;
let outbound: Outbound;
let server: TestRedis;
let redis: Redis;
let storms: RequestStorm[];

const TONE = ['-f', 'lavfi', '-i', 'sine=d=0.1', '-c:a', 'aac', '-f', 'hls', '-hls_playlist_type', 'vod'];

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  // Tries that follow at once: the pauses between them are of another test.
  outbound = createOutbound({
    ...{ allow: parseAllowRules(web.allow), ports: [80], logger, userAgent: 'soundpost-tests' },
    downloadLimits: { backoffMs: 1 },
  });
  server = await startTestRedis();
  redis = connectRedis({ url: server.url, role: 'worker', logger });
  const plain = await placeStream(folder, 'plain', (place) => [...TONE, `${place}/index.m3u8`]);
  const boxed = await placeStream(folder, 'boxed', (place) => [
    ...[...TONE, '-hls_segment_type', 'fmp4', `${place}/index.m3u8`],
  ]);
  const ts = await readFile(`${plain}/index0.ts`);
  const header = await readFile(`${boxed}/init.mp4`);
  const cipher = createCipheriv('aes-128-cbc', STORM_KEY, Buffer.alloc(16));
  const bodies: Readonly<Record<string, Buffer>> = {
    ts,
    m4s: await readFile(`${boxed}/index0.m4s`),
    aes: Buffer.concat([cipher.update(ts), cipher.final()]),
    m: header,
    k: STORM_KEY,
  };
  web.texts.set('s/all.ts', Buffer.concat(Array.from({ length: 150 }, () => ts)));
  web.intercept = ({ url = '', headers }, response) => {
    const [, hops, path] = /^\/r\/(\d)(\/.*)$/.exec(url) ?? [];
    if (hops !== undefined) {
      const location = Number(hops) > 1 ? `/r/${Number(hops) - 1}${path}` : path;
      response.writeHead(302, { location }).end();
      return true;
    }
    if (url.startsWith('/e/')) {
      response.writeHead(503).end();
      return true;
    }
    const [, folderName = '', extension] = /^\/([smk])\/\d+(?:\.(\w+))?$/.exec(url) ?? [];
    const body = bodies[extension ?? folderName];
    if (body === undefined) return false;
    const range = headers.range === undefined ? {} : { 'content-range': `bytes 0-${body.length - 1}/*` };
    response.writeHead(headers.range === undefined ? 200 : 206, range).end(body);
    return true;
  };
  storms = requestStorms(36, { header: header.length, ts: ts.length }, 200);
}, 120_000);
afterAll(async () => {
  await outbound.close();
  await around.close();
  await web.close();
  await closeRedis(redis);
  await server.close();
});

/** A job over a storm, with what the server saw and when its requests began. */
async function weather(storm: RequestStorm) {
  for (const [name, text] of storm.texts) web.texts.set(name, text);
  web.requests.length = 0;
  const clock = new JumpClock();
  const begunMs: number[] = [];
  const running = { now: 0, most: 0 };
  const requests = new StreamRequests({ redis, clock, lease: clock.lease });
  const streamRequests = {
    of(tenant: string, jobId: string): AdmitStreamRequest {
      const admit = requests.of(tenant, jobId);
      return async (request) => {
        const leave = await admit(request);
        begunMs.push(clock.nowMs());
        running.now += 1;
        running.most = Math.max(running.most, running.now);
        return () => {
          running.now -= 1;
          leave();
        };
      };
    },
  };
  const services = { ...around.services, outbound, streamRequests };
  const ending: unknown = await extract({ ...around, services }, web.url('storm'), { format: 'mp3' }).catch(
    (error: unknown) => error,
  );
  // Without the job's own download.
  const seen = web.requests.slice(1);
  return { ending, seen, begunMs, running };
}

/** Everything that a storm breaks. */
async function faultsOf(storm: RequestStorm): Promise<string[]> {
  const { ending, seen, begunMs, running } = await weather(storm);
  const counts = new Map<string, number>();
  for (const path of seen) counts.set(path, (counts.get(path) ?? 0) + 1);
  const beside = seen.filter((path) => !storm.segments.has(path)).length;
  const redirects = seen.filter((path) => path.startsWith('/r/')).length;
  const repeated = [...counts].filter(([path, count]) => count > 3 * (storm.segments.get(path) ?? 1));
  const headers = [...counts].filter(([path, count]) => path.startsWith('/m/') && count > 1);
  const details = ending instanceof ServiceError ? (ending.details ?? '') : 'completed';
  const limit = { requests: /more than 2000 requests/, redirects: /redirect more than 512 times/ };
  const rules: Readonly<Record<string, boolean>> = {
    // One that was admitted may be broken off, as another has failed.
    'each request was admitted': seen.length <= begunMs.length,
    'at most 40 a second': mostWithin(begunMs, 1_000) <= 40,
    'at most 8 at a time': running.most <= 8 && running.now === 0,
    'at most 2,000 beside the segments': beside <= 2_000,
    // The last one is answered, and not followed.
    'at most 512 redirects': redirects <= 512 + 8,
    'each segment three times at most': repeated.length === 0,
    'each header once': headers.length <= (storm.name.includes('nested') ? 1 : 0),
    'headers are for containers with headers': !/transport/.test(storm.name) || headers.length + beside === 0,
    'it ends as it should': storm.beyond === undefined || limit[storm.beyond].test(details),
    'nothing is left': around.left().length === 0,
  };
  const broken = Object.entries(rules).flatMap(([rule, holds]) => (holds ? [] : [rule]));
  return broken.map(
    (rule) => `${storm.name}: not "${rule}" (${seen.length} seen, ${beside} beside, ${details})`,
  );
}

it('a header is fetched once, however often segments come back to it', async () => {
  const lines = Array.from({ length: 60 }, (_, nth) => [
    `#EXT-X-MAP:URI="/m/${nth % 20}"`,
    ...['#EXTINF:0.1,', `/s/${nth}.m4s`],
  ]).flat();
  const text = ['#EXTM3U', '#EXT-X-TARGETDURATION:1', ...lines, '#EXT-X-ENDLIST'].join('\n');
  const { seen } = await weather({ name: 'again', texts: new Map([['storm', text]]), segments: new Map() });
  const headers = seen.filter((path) => path.startsWith('/m/'));
  expect(headers.toSorted()).toEqual(Array.from({ length: 20 }, (_, nth) => `/m/${nth}`).toSorted());
});

/** What takes the fewest requests. */
const CORE = /^(1|2|10|11): /;

it('no job goes beyond its limits', async () => {
  const faults: string[] = [];
  for (const storm of rowsOfRun(storms, ({ name }) => CORE.test(name), 5))
    faults.push(...(await faultsOf(storm)));
  expect(faults).toEqual([]);
}, 1_800_000);
