/**
 * The npm package, as somebody has it who installs it: packed by `npm pack`, installed in an empty folder, run by `npx`. With --long npm
 * installs it, and what it depends on, from its registry; in the core the packages that it names are those of this checkout.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { currentRun } from 'soundpost-testing/by-run';
import { fetch } from 'soundpost-testing/http';
import { descendants, isAlive, signalIfThere } from 'soundpost-testing/processes';
import { type RunningProcess, ServiceHome, startProcess } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { LIMIT_BYTES, MIB, measureUpload, statusOf, ways } from '../api/upload-memory.ts';
import { useVideos } from '../end-to-end/videos.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const fromRegistry = currentRun === 'long';
const execute = promisify(execFile);
const videos = useVideos();

const Packed = z.tuple([
  z.object({
    filename: z.string(),
    size: z.number(),
    unpackedSize: z.number(),
    files: z.array(z.object({ path: z.string() })),
  }),
]);
const Manifest = z.object({
  version: z.string(),
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
});

const environment = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  npm_config_update_notifier: 'false',
};

let folder = '';
let packed: z.infer<typeof Packed>[0];
let manifest: z.infer<typeof Manifest>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-package-'));
  packed = await pack('script/build-package');
  await install(join(folder, packed.filename));
  manifest = Manifest.parse(JSON.parse(await readFile(installed('package.json'), 'utf8')));
}, 600_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const installed = (path: string): string => join(folder, 'node_modules/soundpost', path);

/** Makes a package and packs it. @param script of the checkout */
async function pack(script: string): Promise<z.infer<typeof Packed>[0]> {
  const built = join(folder, 'built');
  await run(join(ROOT, script), built);
  const made = await run('npm', 'pack', built, '--json', '--pack-destination', folder);
  await rm(built, { recursive: true });
  return Packed.parse(JSON.parse(made))[0];
}

async function install(tarball: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  if (fromRegistry) {
    await run('npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', tarball);
    return;
  }
  await mkdir(installed(''), { recursive: true });
  await run('tar', '-xzf', tarball, '-C', installed(''), '--strip-components=1');
  const { dependencies } = Manifest.parse(JSON.parse(await readFile(installed('package.json'), 'utf8')));
  for (const name of Object.keys(dependencies)) {
    const place = join(folder, 'node_modules', name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), place);
  }
  const { bin } = z
    .object({ bin: z.object({ soundpost: z.string() }) })
    .parse(JSON.parse(await readFile(installed('package.json'), 'utf8')));
  await mkdir(join(folder, 'node_modules/.bin'));
  await symlink(`../soundpost/${bin.soundpost}`, join(folder, 'node_modules/.bin/soundpost'));
  await run('chmod', '+x', installed(bin.soundpost));
}

/** In the folder of somebody who has the package. Rejects when it fails. */
async function run(command: string, ...args: string[]): Promise<string> {
  return (await execute(command, args, { cwd: folder, env: environment })).stdout;
}

async function codecOf(file: string): Promise<string> {
  const entries = ['-v', 'error', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0'];
  return (await run('ffprobe', ...entries, file)).trim();
}

describe('the package', () => {
  it('holds what runs, what is read, and nothing else, and is small', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        ...['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'bin/soundpost.js', 'dist/main.js'],
        ...[
          'dist/cli/loop-watchdog-thread.js',
          'dist/jobs/lua/reserve.lua',
          'web/reference/scalar.js',
          'docs/operations/deploying.md',
        ],
      ]),
    );
    const allowed =
      /^(bin\/soundpost\.js|dist\/.*\.(js|lua)|web\/.*|docs\/.*\.(md|png)|examples\/.*|packages\/client\/README\.md|[A-Z]+(\.md)?|docker-compose\.yml|package\.json)$/;
    expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
    expect(packed.size).toBeLessThan(2.5 * 1024 ** 2);
    expect(packed.unpackedSize).toBeLessThan(8 * 1024 ** 2);
  });

  it('runs by npx: its version, and a doctor who finds nothing wrong', async () => {
    expect(await run('npx', '--no-install', 'soundpost', '--version')).toBe(`${manifest.version}\n`);
    const answer = await run('npx', '--no-install', 'soundpost', 'doctor', '--json').catch(
      (error: { stdout: string }) => error.stdout,
    );
    const { checks } = z
      .object({ checks: z.array(z.object({ check: z.string(), verdict: z.string(), found: z.string() })) })
      .parse(JSON.parse(answer));
    expect(checks).toContainEqual({
      check: 'Node',
      verdict: 'ok',
      found: `${process.versions.node}, runs compiled code`,
    });
    // The usual ports may be somebody's, and the system's ffmpeg may have flaws that are known.
    const wrong = checks.filter(({ check, verdict }) => verdict !== 'ok' && check !== 'Ports');
    expect(wrong.filter(({ found }) => !found.includes('has published flaws'))).toEqual([]);
  });

  it('makes an MP3 of a video in an empty folder', async () => {
    const empty = join(folder, 'empty');
    await mkdir(empty);
    await copyFile(videos.talk, join(empty, 'video.mp4'));
    const extract = ['--no-install', 'soundpost', 'extract', 'video.mp4'];
    await execute('npx', extract, { cwd: empty, env: environment });
    expect((await readdir(empty)).sort()).toEqual(['video.mp3', 'video.mp4']);
    expect(await codecOf(join(empty, 'video.mp3'))).toBe('mp3');
  });
});

describe('the package of our own ffmpeg', { tags: 'quick-ffmpeg' }, () => {
  const name = `soundpost-tools-${process.platform}-${process.arch}`;
  const place = (): string => join(folder, 'node_modules', name);
  /** Nothing but Node: no ffmpeg, no bubblewrap, no shell. */
  const bare = { PATH: '', HOME: '/nonexistent' };
  const soundpost = (...args: string[]) =>
    execute(process.execPath, [installed('bin/soundpost.js'), ...args], { cwd: folder, env: bare });

  beforeAll(async () => {
    const { filename, files } = await pack('script/build-tools');
    expect(files.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['licences/LGPL-2.1', 'source/ffmpeg.patch', 'source/versions']),
    );
    if (fromRegistry) {
      await run('npm', 'install', '--no-audit', '--no-fund', join(folder, filename));
    } else {
      await mkdir(place());
      await run('tar', '-xzf', join(folder, filename), '-C', place(), '--strip-components=1');
    }
  }, 600_000);
  afterAll(() => rm(place(), { recursive: true }));

  it('is an optional dependency of this very version', () => {
    expect(manifest.optionalDependencies).toMatchObject({ [name]: manifest.version });
  });

  it('lets `soundpost extract` work on a machine without ffmpeg, confined', async () => {
    await copyFile(videos.talk, join(folder, 'alone.mp4'));
    await soundpost('extract', 'alone.mp4');
    expect(await codecOf(join(folder, 'alone.mp3'))).toBe('mp3');
    const { stdout } = await soundpost('doctor').catch((error: { stdout: string }) => error);
    expect(stdout).toContain(`(${place()}/bin/ffmpeg), with every encoder`);
    expect(stdout).toMatch(/Sandbox +ffmpeg runs in a sandbox \(landlock\)/);
  });

  it('has the checksums of its programs', async () => {
    expect(await execute('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], { cwd: place() })).toMatchObject({
      stdout: '',
    });
  });
});

it('its bin starts an API that stays small whatever it takes in', async () => {
  const home = await ServiceHome.make();
  try {
    const started = home.run([join(folder, 'node_modules/.bin/soundpost'), 'api']);
    const address = await started.says(/^API\s+(http\S+)/m);
    const api = { address, key: home.key, status: statusOf(started.pid) };
    const { grownBytes } = await measureUpload(api, videos.talk, ways.form, 256 * MIB);
    expect(grownBytes).toBeLessThan(LIMIT_BYTES);
  } finally {
    await home.remove();
  }
}, 300_000);

describe('`npx soundpost serve`', () => {
  let served: RunningProcess;
  let api = '';
  let key = '';
  beforeAll(async () => {
    const ports = { API_PORT: '0', GATEWAY_PORT: '0', LOG_LEVEL: 'warn' };
    served = startProcess(
      ['npx', '--no-install', 'soundpost', 'serve'],
      { PATH: environment.PATH, HOME: process.env.HOME ?? '', ...ports },
      folder,
    );
    api = await served.says(/^API\s+(http\S+)/m);
    key = await served.says(/^API key\s+(sp_\S+)/m);
  });
  afterAll(async () => {
    // npx, its shell, the service and what that has started; the service ends the last of them.
    const pids = descendants(served.pid);
    for (const pid of pids) signalIfThere(pid, 'SIGTERM');
    await served.exited;
    // npx may go first.
    await until('the service and its Redis have ended', () => !pids.some(isAlive));
  });

  it('extracts a video for soundpost-client, and serves its pages', async () => {
    const client = join(folder, 'node_modules/soundpost-client');
    await run(join(ROOT, 'script/build-client'), client);
    await writeFile(
      join(folder, 'program.mjs'),
      `import { writeFile } from 'node:fs/promises';
      import { createClient } from 'soundpost-client';
      const [baseUrl, apiKey, video] = process.argv.slice(2);
      const client = createClient({ baseUrl, apiKey });
      const { jobId } = await client.extract({ file: video, filename: 'talk.mp4', output: { format: 'mp3' } });
      const { outputFile } = await client.waitFor(jobId);
      await writeFile(outputFile.filename, Buffer.from(await (await client.download(jobId)).arrayBuffer()));
      console.log(outputFile.filename);`,
    );
    expect(await run(process.execPath, 'program.mjs', api, key, videos.talk)).toBe('talk.mp3\n');
    expect((await stat(join(folder, 'talk.mp3'))).size).toBeGreaterThan(10_000);
    expect(await codecOf(join(folder, 'talk.mp3'))).toBe('mp3');
    const gateway = await served.says(/^Gateway\s+(http\S+)/m);
    const index = await (await fetch(`${api}/`)).text();
    const [, script = ''] = /src="(console\/parts\/[^"]+)"/.exec(index) ?? [];
    for (const page of [
      `${api}/`,
      `${api}/console/console.css`,
      `${api}/${script}`,
      `${api}/docs`,
      `${api}/docs/scalar.js`,
      `${api}/docs/reference.js`,
      `${gateway}/docs`,
      `${gateway}/inbox`,
    ]) {
      expect((await fetch(page)).status, page).toBe(200);
    }
    // The thread that watches the event loop is a file that is started by its name.
    expect(served.output()).not.toContain('the event loop watchdog has stopped');
  });
});
