/**
 * Each thing that keeps a hostile file off, alone: the others would hide that it is gone. Every case has its
 * counterpart without it, which shows that the file does harm then.
 */
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { detectSandbox } from 'soundpost-media/abilities';
import { probe } from 'soundpost-media/probe';
import { type MediaTools, runFfmpeg } from 'soundpost-media/run';
import { bareTools, extract, noAbort, tools } from 'soundpost-testing/extracting';
import { systemTools } from 'soundpost-testing/media-tools';
import { ffmpeg, inspect } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { blackPng, withId3Cover } from './covers.ts';
import type { HostileFile } from './hostile-file.ts';
import { MemoryWatch } from './memory-watch.ts';
import { playlistFiles } from './playlists.ts';
import { tryFile } from './trial.ts';

const MIB = 1024 * 1024;
/** More than a tool needs that does not decode the picture, and less than the picture. */
const LARGE_BYTES = 200 * MIB;
const SECRET = 'CANARY-layers';
const limits = { signal: noAbort, wallLimitMs: 20_000 };

let root = '';
let canary = '';
let playlists: HostileFile[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'soundpost-layers-'));
  canary = join(root, 'canary.ts');
  await mkdir(join(root, 'work'));
  await ffmpeg('-v', 'error', '-f', 'lavfi', '-t', '1', '-i', 'sine', canary);
  playlists = playlistFiles(canary, 'http://127.0.0.1:9');
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

describe('a playlist that names a local file', async () => {
  // The one of script/ffmpeg knows no playlists, which would hide the layers that others need.
  const unconfined: MediaTools = systemTools;
  const confined: MediaTools = { ...systemTools, sandbox: await detectSandbox(systemTools) };

  const named = (kind: string): HostileFile => {
    const file = playlists.find(({ name }) => name.startsWith(`${kind}.`));
    if (file === undefined) throw new Error(`there is no ${kind}`);
    return file;
  };
  /** ffmpeg as somebody runs it who does not think of playlists. */
  const guileless = async (kind: string, by: MediaTools) => {
    const path = join(root, `${kind}.mp4`);
    const output = join(root, 'work', 'stolen.wav');
    await named(kind).place(path, canary);
    return runFfmpeg(by, ['-i', `file:${path}`, '-f', 'wav', output], {
      ...limits,
      access: { reads: [path], writes: [output] },
      maxFileBytes: MIB,
    });
  };

  it('is read by a guileless ffmpeg, so that what follows proves something', async () => {
    await expect(guileless('hls-absolute', unconfined)).resolves.toBeDefined();
    await expect(guileless('ffconcat-neighbour', unconfined)).resolves.toBeDefined();
  });

  it('is refused by its first bytes and by the list of demuxers, without a sandbox', async () => {
    // Fails when sniff.ts takes anything, or when -f and -format_whitelist go from inputGuards.
    for (const file of playlists) {
      const trial = await tryFile(
        file,
        { format: 'mp3' },
        { tools: unconfined, folder: join(root, 'work'), canary, secret: SECRET },
      );
      expect([file.name, trial.faults]).toEqual([file.name, []]);
    }
  });

  it('finds no file in the sandbox, without any list', async () => {
    // Fails when the level of the sandbox is none, or when it binds more than it has to.
    await expect(guileless('hls-absolute', confined)).rejects.toMatchObject({ name: 'ToolFailure' });
    await expect(guileless('ffconcat-neighbour', confined)).rejects.toMatchObject({ name: 'ToolFailure' });
  });
});

describe('a file that asks for memory', () => {
  let watch: MemoryWatch;
  beforeEach(() => {
    watch = new MemoryWatch();
  });
  afterEach(() => {
    watch.stop();
  });

  it('does not get it by a large picture, without limits of the system', async () => {
    // Fails when -max_pixels goes from inputGuards: 254 MB of pixels are just within -max_alloc.
    const [mp3, path] = [join(root, 'short.mp3'), join(root, 'cover.mp3')];
    await ffmpeg('-v', 'error', '-f', 'lavfi', '-t', '1', '-i', 'sine', mp3);
    await writeFile(path, withId3Cover(await readFile(mp3), blackPng(9200)));
    await inspect(path);
    expect(watch.peakBytes).toBeGreaterThan(LARGE_BYTES);
    watch.reset();
    // One that is gone again before anybody has looked has shown nothing; script/ffmpeg's always is.
    await until('it was seen', async () => {
      await probe(systemTools, path, { signal: noAbort });
      return watch.peakBytes > 0;
    });
    expect(watch.peakBytes).toBeLessThan(LARGE_BYTES);
  });

  it('does not get it where no option of ffmpeg’s stands in its way', async () => {
    // Fails when --data goes from the prefix. A frame without an end, which the parser of FLAC gathers.
    const path = join(root, 'endless.flac');
    await ffmpeg('-v', 'error', '-f', 'lavfi', '-t', '1', '-i', 'anoisesrc', path);
    await truncate(path, 1024 * MIB);
    const run = (confined: MediaTools): Promise<unknown> =>
      extract(path, join(root, 'work', 'output.mp3'), { format: 'mp3' }, { tools: confined }).catch(
        () => undefined,
      );
    await run(bareTools);
    expect(watch.peakBytes).toBeGreaterThan(512 * MIB);
    watch.reset();
    await run(tools);
    expect(watch.peakBytes).toBeGreaterThan(0);
    expect(watch.peakBytes).toBeLessThan(512 * MIB);
  });
});
