/** Which ffmpeg and ffprobe a process takes. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { mediaTools } from 'soundpost-testing/media-tools';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { detectSandbox, findTools } from '../src/abilities.ts';

const PATH = process.env.PATH ?? '';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-tools-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function place(path: string): Promise<string> {
  const program = join(folder, path);
  await mkdir(dirname(program), { recursive: true });
  await writeFile(program, '', { mode: 0o755 });
  return program;
}

it('are those of FFMPEG_PATH, with the ffprobe beside it', async () => {
  const [ffmpegPath, ffprobePath] = [await place('both/ffmpeg'), await place('both/ffprobe')];
  expect(findTools(ffmpegPath, PATH)).toMatchObject({
    tools: { ffmpegPath, ffprobePath },
    isOurs: false,
  });
});

it('are an ffmpeg of FFMPEG_PATH and the ffprobe on the PATH, where there is none beside it', async () => {
  const ffmpegPath = await place('alone/ffmpeg-8');
  const { ffprobePath } = findTools('ffmpeg', PATH).tools ?? {};
  expect(ffprobePath).toBeDefined();
  expect(findTools(ffmpegPath, PATH)).toMatchObject({ tools: { ffmpegPath, ffprobePath } });
});

it('are what script/ffmpeg has built where that stands, and the first on the PATH elsewhere', () => {
  const built = resolve(import.meta.dirname, '../../../.ffmpeg/bin');
  const isOurs = existsSync(built);
  const { tools: onPath } = findTools('ffmpeg', PATH);
  expect(onPath?.ffmpegPath).not.toContain(built);
  expect(findTools(undefined, PATH, built)).toMatchObject({
    tools: isOurs ? { ffmpegPath: `${built}/ffmpeg`, ffprobePath: `${built}/ffprobe` } : { ...onPath },
    isOurs,
  });
});

it.each([
  ['no-such-ffmpeg', 'ffmpeg is not on the PATH'],
  ['/nowhere/ffmpeg', 'there is no ffmpeg with an ffprobe at /nowhere/ffmpeg'],
])('are not there with FFMPEG_PATH=%s, which is said', (FFMPEG_PATH, missing) => {
  expect(findTools(FFMPEG_PATH, PATH)).toEqual({ tools: undefined, missing });
});

it('work in a sandbox wherever they lie, with the starter and without', async () => {
  expect(await detectSandbox(mediaTools)).toMatchObject({
    level: expect.stringMatching(/^(landlock|bubblewrap)$/),
    hasLimits: true,
  });
  expect(await detectSandbox({ ...mediaTools, starterPath: undefined })).toMatchObject({
    level: 'bubblewrap',
    hasLimits: true,
  });
});
