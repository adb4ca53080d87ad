/** Hostile playlists and manifests: nothing of this machine is read, nobody else is connected to, and each job ends with a clear error. */
import { once } from 'node:events';
import { copyFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { ServiceError } from 'soundpost-contract/errors';
import { rowsOfRun } from 'soundpost-testing/by-run';
import { recordConnects } from 'soundpost-testing/connect-recorder';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { hostileStreams } from './hostile-streams.ts';
import { extract } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;
let foreign: Server;

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  foreign = createServer().listen(0, '127.0.0.1');
  await once(foreign, 'listening');
  const tone = ['-f', 'lavfi', '-i', 'sine=d=2', '-c:a', 'aac'];
  await copyFile(await cachedMedia('good.ts', tone), folder.at('good.ts'));
  const fragments = [...tone, '-movflags', 'empty_moov+default_base_moof'];
  await copyFile(await cachedMedia('good.mp4', fragments), folder.at('good.mp4'));
  await writeFile(folder.at('key'), 'sixteen bytes...');
  await writeFile(folder.at('page.html'), '<!doctype html><title>Not found</title>'.repeat(10));
  web.texts.set('tags.mp3', Buffer.from('ID3\x04\0\0\0\0\0\0'.repeat(10_000), 'latin1'));
  web.texts.set('media.m3u8', '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/good.ts\n#EXT-X-ENDLIST\n');
  web.texts.set('master.m3u8', '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/media.m3u8\n');
  web.intercept = ({ url = '' }, response) => {
    if (!url.startsWith('/to/')) return false;
    response.writeHead(302, { location: decodeURIComponent(url.slice('/to/'.length)) }).end();
    return true;
  };
});
afterAll(async () => {
  foreign.close();
  await around.close();
  await web.close();
});

it('a good stream beside them is read', async () => {
  expect((await extract(around, web.url('master.m3u8'), { format: 'm4a' })).outputFile.duration).toBeCloseTo(
    2,
    0,
  );
});

it('each of hundreds ends with its error, and nobody is asked but the server that may be', async () => {
  const address = foreign.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  let visitors = 0;
  foreign.on('connection', (socket) => {
    visitors += 1;
    socket.destroy();
  });
  const streams = hostileStreams({
    origin: web.origin,
    foreign: `127.0.0.1:${address.port}`,
    canary: folder.at('good.ts'),
  });
  expect(streams.length).toBeGreaterThan(200);
  const some = rowsOfRun(streams, (_, nth) => nth % 12 === 0);
  const connects = recordConnects();
  const wrong: string[] = [];
  try {
    for (const { name, text, code, details } of some) {
      web.texts.set('hostile', text);
      const ending = await extract(around, web.url('hostile'), { format: 'mp3' }).catch(
        (error: unknown) => error,
      );
      const isRight =
        ending instanceof ServiceError &&
        ending.code === code &&
        (typeof details === 'string' ? ending.details === details : details.test(ending.details ?? ''));
      if (!isRight) wrong.push(`${name} → ${told(ending)}`);
      if (around.left().length > 0) wrong.push(`${name} left something`);
    }
  } finally {
    connects.stop();
  }
  expect(wrong).toEqual([]);
  expect(visitors).toBe(0);
  expect([...new Set(connects.attempts)]).toEqual([web.allow]);
}, 300_000);

it('a segment without end stops at the limit of bytes, and takes no more room than that', async () => {
  const limits = { ...around.services.limits, maxInputBytes: 2 * 1024 * 1024 };
  const narrow = { ...around, services: { ...around.services, limits } };
  web.texts.set('endless.m3u8', '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/endless\n#EXT-X-ENDLIST\n');
  web.intercept = ({ url }, response) => {
    if (url !== '/endless') return false;
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024, 0x47))) {
        // until the socket is full
      }
    };
    response.on('drain', more);
    more();
    return true;
  };
  await expect(extract(narrow, web.url('endless.m3u8'), { format: 'mp3' })).rejects.toMatchObject({
    code: 'DOWNLOAD_FAILED',
    details: 'the file is larger than allowed',
  });
});

function told(ending: unknown): string {
  return ending instanceof ServiceError ? `${ending.code}: ${ending.details}` : String(ending);
}
