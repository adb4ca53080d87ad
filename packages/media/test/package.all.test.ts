/** The package soundpost-media, as somebody has it who installs it: packed, unpacked in an empty folder with the packages that it names, and used by the program of its page. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../../..');
const execute = promisify(execFile);
const environment = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };

let folder = '';
let video = '';
let server: Server;
let address = '';
let manifest: { dependencies: Record<string, string> };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-media-package-'));
  const built = join(folder, 'built');
  await run(ROOT, join(ROOT, 'script/build-media'), built);
  await run(folder, 'npm', 'pack', built, '--pack-destination', folder);
  const installed = join(folder, 'node_modules/soundpost-media');
  await mkdir(installed, { recursive: true });
  await run(folder, 'tar', '-xzf', 'soundpost-media-0.1.0.tgz', '-C', installed, '--strip-components=1');
  manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  for (const name of Object.keys(manifest.dependencies)) {
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const page = await readFile(join(installed, 'README.md'), 'utf8');
  await writeFile(join(folder, 'program.js'), /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? '');
  video = await cachedMedia('film.mp4', [
    ...[
      '-f',
      'lavfi',
      '-i',
      'testsrc2=size=160x120:duration=3',
      '-f',
      'lavfi',
      '-i',
      'sine=frequency=440:duration=3',
    ],
    ...['-c:v', 'mpeg4', '-c:a', 'aac', '-shortest'],
  ]);
  server = createServer((_request, response) => void createReadStream(video).pipe(response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  return (await execute(command, args, { cwd, env: environment })).stdout;
}

async function codecOf(file: string): Promise<string> {
  const shown = ['-v', 'error', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0'];
  return (await run(folder, 'ffprobe', ...shown, file)).trim();
}

describe('soundpost-media', () => {
  it('names packages of others alone, none of which is a server or a client of Redis', () => {
    expect(Object.keys(manifest.dependencies)).toEqual([
      'content-disposition',
      'fluent-ffmpeg',
      'ipaddr.js',
      'jschardet',
      'undici',
      'zod',
    ]);
  });

  it.each([
    ['a file', () => [video]],
    ['an address', () => [`http://${address}/film.mp4`, address]],
  ])('extracts from %s', async (_, args) => {
    const said = await run(folder, process.execPath, 'program.js', ...args());
    expect(said).toMatch(/^3\.0 s of mp3, ffmpeg confined by (bubblewrap|landlock|none)\n$/);
    expect(await codecOf(join(folder, 'talk.mp3'))).toBe('mp3');
    const { data } = JSON.parse(await readFile(join(folder, 'talk.json'), 'utf8'));
    expect(data.length).toBeGreaterThan(100);
    await rm(join(folder, 'talk.mp3'));
  });

  it.each([
    [
      'a field that is none',
      "'program.js'",
      "[{ path: 'a.mp3', format: 'mp3', bitrate: 'loud' }]",
      /INVALID_OUTPUT: outputs\.0\.bitrate: must be of the form 192k/,
    ],
    [
      'no file',
      "'nowhere.mp4'",
      "[{ path: 'a.mp3', format: 'mp3' }]",
      /INVALID_SOURCE: there is no file at .*nowhere\.mp4/,
    ],
    [
      'a private address',
      "'http://10.0.0.1/a.mp4'",
      "[{ path: 'a.mp3', format: 'mp3' }]",
      /INVALID_SOURCE: /,
    ],
    [
      'a waveform without audio before it',
      "'program.js'",
      "[{ path: 'a.json', format: 'waveform' }]",
      /INVALID_OUTPUT: outputs\.0\.format: must be an audio format in the first output/,
    ],
    [
      'two outputs at one path',
      "'program.js'",
      "[{ path: 'a.mp3', format: 'mp3' }, { path: './a.mp3', format: 'mp3' }]",
      /INVALID_OUTPUT: outputs\.1\.path: .* is the path of another output/,
    ],
    [
      'a folder that is not there',
      "'program.js'",
      "[{ path: 'nowhere/a.mp3', format: 'mp3' }]",
      /INVALID_OUTPUT: outputs\.0\.path: there is no folder .*nowhere/,
    ],
    ['no media', "'program.js'", "[{ path: 'a.mp3', format: 'mp3' }]", /INVALID_VIDEO: /],
  ])('says what is wrong with %s, and leaves nothing', async (_, source, outputs, message) => {
    const program = `import { openMedia } from 'soundpost-media';
      const media = await openMedia();
      await media.extract(${source}, ${outputs}).catch((error) => console.log(error.message));
      await media.close();`;
    expect(await run(folder, process.execPath, '--input-type=module', '--eval', program)).toMatch(message);
    expect((await readdir(folder)).filter((name) => /^a\.mp3$|^\.soundpost/.test(name))).toEqual([]);
  });

  it('ends with its signal, and leaves nothing', async () => {
    const program = `import { openMedia } from 'soundpost-media';
      const media = await openMedia();
      const ending = new AbortController();
      const onProgress = () => ending.abort(new Error('enough'));
      await media.extract(process.argv[1], [{ path: 'a.flac', format: 'flac' }], { signal: ending.signal, onProgress })
        .catch((error) => console.log(error.message));
      await media.close();`;
    const said = await run(folder, process.execPath, '--input-type=module', '--eval', program, video);
    expect(said).toBe('enough\n');
    expect((await readdir(folder)).filter((name) => /^a\.flac$|^\.soundpost/.test(name))).toEqual([]);
  });

  it('has types that stand alone, and refuse what is no format', async () => {
    const types = await readFile(join(folder, 'node_modules/soundpost-media/dist/index.d.ts'), 'utf8');
    expect(types).not.toMatch(/\bimport\b|\brequire\b/);
    const program = (format: string) =>
      `import { openMedia } from 'soundpost-media';\nconst media = await openMedia();\nawait media.extract('a.mp4', [{ path: 'a', format: '${format}' }]);\n`;
    await writeFile(join(folder, 'right.ts'), program('opus'));
    await writeFile(join(folder, 'wrong.ts'), program('mp4'));
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', ''];
    await run(folder, tsc, ...options, 'right.ts');
    await expect(run(folder, tsc, ...options, 'wrong.ts')).rejects.toMatchObject({
      stdout: expect.stringContaining('wrong.ts(3,'),
    });
  });
});
