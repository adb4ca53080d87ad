/** `extract` without any service. */
import { execFile } from 'node:child_process';
import { lstat, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { currentRun } from 'soundpost-testing/by-run';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useVideos } from '../end-to-end/videos.ts';
import { type Ended, MAIN, useDesk } from './command-line.ts';

const run = promisify(execFile);
const videos = useVideos();
const desk = useDesk();
let web: VideoServer;
beforeAll(async () => {
  web = await serveVideos(videos.folder);
  desk().environment = { OUTBOUND_ALLOW: web.allow };
});
afterAll(() => web.close());

const path = (name: string) => join(desk().folder, name);
const json = (ended: Ended) => JSON.parse(ended.stdout.toString('utf8'));

async function probed(file: string) {
  const { stdout } = await run('ffprobe', [
    '-v',
    'error',
    '-show_format',
    '-show_streams',
    '-of',
    'json',
    file,
  ]);
  const { format, streams } = JSON.parse(stdout);
  return { codec: streams[0].codec_name, rate: streams[0].sample_rate, seconds: Number(format.duration) };
}

describe('a file', () => {
  it.runIf(currentRun === 'core')(
    'becomes one of its name beside you, and a second one beside the first; one line a step',
    async () => {
      const first = await desk().soundpost(['extract', videos.talk]);
      expect(first.stderr.split('\n')).toEqual([
        'reading',
        'analyzing',
        'extracting',
        'finalizing',
        expect.stringMatching(/^talk\.mp3: mp3, \d+\.\d\d s, \d+k, [\d.]+ KiB$/),
        '',
      ]);
      expect([first.code, first.stdout.length]).toEqual([0, 0]);
      expect((await probed(path('talk.mp3'))).codec).toBe('mp3');
      const second = await desk().soundpost(['extract', videos.talk, '--json']);
      expect(json(second)).toMatchObject({
        file: path('talk-2.mp3'),
        inputFile: { name: 'talk.mp4', format: 'mp4' },
        outputFile: { format: 'mp3', copied: false, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      });
      expect(JSON.stringify(json(second))).not.toContain('storageKey');
      // As everybody's files are, not as the service keeps its own.
      expect((await stat(path('talk-2.mp3'))).mode & 0o777).toBe(0o666 & ~process.umask());
      expect(await desk().files()).toEqual(['talk-2.mp3', 'talk.mp3']);
      expect(await desk().leftovers()).toEqual([]);
    },
  );

  it.runIf(currentRun === 'core')('is probed: what is in it is printed, and no file is made', async () => {
    const before = await desk().files();
    const [shown, answer] = await Promise.all([
      desk().soundpost(['extract', videos.talk, '-f', 'probe']),
      desk().soundpost(['extract', videos.talk, '-f', 'probe', '--json', '--quiet']),
    ]);
    expect(shown.stdout.toString()).toMatch(
      /^video +talk\.mp4\ncontainer +mp4\nlength +[\d.]+ s\nsize +\d+ bytes\n\nTRACK +CODEC +LANGUAGE[^\n]+\n0 +aac .* default\n$/,
    );
    expect(shown.stderr).toBe('reading\nanalyzing\n');
    expect(json(answer)).toEqual({
      inputFile: expect.objectContaining({
        name: 'talk.mp4',
        tracks: [expect.objectContaining({ index: 0 })],
      }),
      warnings: [],
    });
    expect([shown.code, answer.code, await desk().files()]).toEqual([0, 0, before]);
  });

  it.runIf(currentRun === 'core')('is cut, levelled and made what the name of the output says', async () => {
    const args = ['--start', '0:00:01', '--end', '2.5', '--loudness', '-20', '--sample-rate', '24000'];
    const ended = await desk().soundpost(['extract', videos.talk, ...args, '-o', 'part.flac', '--json']);
    expect(ended.code).toBe(0);
    const { outputFile } = json(ended);
    expect(outputFile.loudness.outputLufs).toBeCloseTo(-20, 0);
    const made = await probed(path('part.flac'));
    expect([made.codec, made.rate]).toEqual(['flac', '24000']);
    expect(made.seconds).toBeCloseTo(1.5, 1);
    expect(ended.stderr).toContain('normalizing\n');
  });

  it.runIf(currentRun === 'core')(
    'overwrites nothing but with --force, and asks before it works',
    async () => {
      await writeFile(path('mine.mp3'), 'mine');
      const refused = await desk().soundpost(['extract', videos.talk, '-o', 'mine.mp3']);
      expect([refused.code, refused.stderr]).toEqual([
        2,
        'soundpost: mine.mp3 already exists; --force overwrites it\n',
      ]);
      expect(await readFile(path('mine.mp3'), 'utf8')).toBe('mine');
      expect(
        (await desk().soundpost(['extract', videos.talk, '-o', 'mine.mp3', '-y', '--quiet'])).stderr,
      ).toBe('');
      expect((await probed(path('mine.mp3'))).codec).toBe('mp3');
    },
  );

  it.runIf(currentRun === 'all')(
    'may be a link, and is called as that is; a link may be overwritten through, but is not where it leads nowhere',
    async () => {
      await symlink(videos.talk, path('linked video ü.mp4'));
      await symlink('nowhere.mp3', path('dangling.mp3'));
      await writeFile(path('real.mp3'), 'old');
      await symlink('real.mp3', path('link.mp3'));
      const [named, refused, through] = await Promise.all([
        desk().soundpost(['extract', 'linked video ü.mp4', '--json']),
        desk().soundpost(['extract', videos.talk, '-o', 'dangling.mp3']),
        desk().soundpost(['extract', videos.talk, '-o', 'link.mp3', '--force']),
      ]);
      expect([named.code, json(named).file]).toEqual([0, path('linked video ü.mp3')]);
      // Before any work.
      expect(refused.stderr).toBe('soundpost: dangling.mp3 already exists; --force overwrites it\n');
      expect([through.code, (await lstat(path('link.mp3'))).isSymbolicLink()]).toEqual([0, true]);
      expect((await probed(path('real.mp3'))).codec).toBe('mp3');
    },
  );

  it.runIf(currentRun === 'all')(
    'keeps a name as long as a file system takes, shortened where the audio needs more',
    async () => {
      const long = `${'日'.repeat(83)}.mp4`;
      await symlink(videos.talk, path(long));
      const ended = await desk().soundpost(['extract', long, '-f', 'flac', '--json']);
      expect(ended.code).toBe(0);
      expect(json(ended).file).toMatch(/\/日{78}\.flac$/);
    },
  );

  it.runIf(currentRun === 'all')('goes into a folder, and into a device without replacing it', async () => {
    await mkdir(path('folder'));
    const [inFolder, inDevice] = await Promise.all([
      desk().soundpost(['extract', videos.talk, '-o', 'folder', '-f', 'm4a', '--name', 'speech', '--json']),
      desk().soundpost(['extract', videos.talk, '-o', '/dev/null', '-f', 'm4a']),
    ]);
    expect(json(inFolder)).toMatchObject({ file: path('folder/speech.m4a'), outputFile: { copied: true } });
    expect(inDevice.code).toBe(0);
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
  });
});

describe('pipes', () => {
  it.runIf(currentRun === 'core')('carry the video in and nothing but the audio out', async () => {
    // Whoever reads it reads all: ffprobe would leave in the middle, which fails the command (see `streams`).
    const ended = await desk().shell(
      `soundpost extract - -o - -f opus < '${videos.talk}' | cat > heard.opus`,
    );
    expect([ended.stdout.length, ended.code]).toEqual([0, 0]);
    expect((await probed(path('heard.opus'))).codec).toBe('opus');
  });

  it.runIf(currentRun === 'all')(
    'carry a substituted process in, and JSON into jq',
    { tags: 'jq' },
    async () => {
      const ended = await desk().shell(
        `soundpost extract <(cat '${videos.talk}') -o piped.mp3 --json | jq -r .outputFile.filename`,
      );
      expect([ended.stdout.toString(), ended.code]).toEqual(['audio.mp3\n', 0]);
    },
  );

  it.runIf(currentRun === 'all')(
    'with a name wait for the other end, and are let go when the command is told to end',
    async () => {
      await run('mkfifo', [path('in.pipe'), path('out.pipe')]);
      const waiting = [
        { args: ['in.pipe', '-o', 'piped-in.mp3'], last: /^reading$/m },
        { args: [videos.talk, '-f', 'mp3', '-o', 'out.pipe'], last: /^finalizing$/m },
      ].map(async ({ args, last }) => {
        const running = desk().start([process.execPath, MAIN, 'extract', ...args]);
        await running.says(last);
        running.signal('SIGTERM');
        return (await running.ended).code;
      });
      expect(await Promise.all(waiting)).toEqual([130, 130]);
      const through = await desk().shell(
        `soundpost extract in.pipe -f opus -o out.pipe --quiet & cat '${videos.talk}' > in.pipe; cat out.pipe > heard.opus; wait $!`,
      );
      expect(through.code).toBe(0);
      expect((await probed(path('heard.opus'))).codec).toBe('opus');
    },
  );

  it.runIf(currentRun === 'all')('and files that are full are told in a sentence', async () => {
    const ended = await desk().shell(
      `soundpost extract '${videos.talk}' -f mp3 -o - --quiet > /dev/full; echo $?; soundpost extract '${videos.talk}' -o full.mp3 --json --quiet > /dev/full; echo $?`,
    );
    const sentence = 'soundpost: standard output cannot be written: ENOSPC: no space left on device, write\n';
    expect([ended.stderr, ended.stdout.toString()]).toEqual([sentence + sentence, '1\n1\n']);
  });

  it.runIf(currentRun === 'all')('that are closed early end it without a word', async () => {
    const ended = await desk().shell(`soundpost extract '${videos.talk}' -o - -f wav --quiet | true`);
    expect([ended.stderr, ended.code]).toEqual(['', 1]);
    expect(await desk().leftovers()).toEqual([]);
  });
});

it.runIf(currentRun === 'core')(
  'fetches an address through the guard, and names the variable that opens one',
  async () => {
    const fetched = await desk().soundpost(['extract', web.url('talk.mp4'), '-o', 'fetched.mp3']);
    expect(fetched.stderr).toMatch(/^downloading\nanalyzing\n/);
    expect(fetched.code).toBe(0);
    desk().environment = {};
    const refused = await desk().soundpost(['extract', web.url('talk.mp4'), '-o', 'no.mp3', '--json']);
    expect(refused.stderr).toContain('OUTBOUND_ALLOW=host:port');
    expect([refused.code, json(refused).error.code]).toEqual([2, 'INVALID_SOURCE']);
  },
);

describe.runIf(currentRun === 'core')('a video that is none', () => {
  // Once, and not by each of those that run at the same time: one would read what another is writing.
  beforeAll(async () => {
    await writeFile(path('notes.mp4'), 'This is no video.\n'.repeat(100));
    await writeFile(path('empty.mp4'), '');
  });

  it.concurrent.each<[what: string, args: () => string[], sentence: RegExp]>([
    ['is a text', () => ['notes.mp4'], /^soundpost: INVALID_VIDEO: .*\n {2}This is not video or audio/m],
    ['is empty', () => ['empty.mp4'], /^soundpost: INVALID_VIDEO: /m],
    ['lacks the track', () => [videos.talk, '-t', 'fr'], /^soundpost: EXTRACTION_FAILED: .*fr/m],
  ])('%s', async (_what, args, sentence) => {
    const ended = await desk().soundpost(['extract', ...args(), '-o', 'never.mp3']);
    expect(ended.stderr).toMatch(sentence);
    expect([ended.code, ended.stdout.length]).toEqual([1, 0]);
    expect(await desk().files()).not.toContainEqual(expect.stringContaining('never'));
  });
});

it.runIf(currentRun === 'core')('answers a command line that cannot be read in JSON as well', async () => {
  const ended = await desk().soundpost(['extract', '--json']);
  expect(ended.stderr).toBe("error: missing required argument 'video'\n");
  expect([ended.code, json(ended)]).toEqual([
    2,
    { error: { code: 'WRONG_USAGE', message: "missing required argument 'video'" } },
  ]);
});

it.runIf(currentRun === 'core')('says what is missing where there is no ffmpeg', async () => {
  const command = [process.execPath, MAIN, 'extract', videos.talk, '-o', 'none.mp3'];
  const ended = await desk().start(command, 'ignore', {
    PATH: desk().temporary,
    FFMPEG_PATH: 'ffmpeg',
  }).ended;
  expect(ended.stderr).toContain('ffmpeg and ffprobe are not on the PATH: install ffmpeg');
  expect(ended.code).toBe(2);
});

it.runIf(currentRun === 'all')(
  'keeps what is to stay free of the volume of its temporary files',
  async () => {
    const command = [process.execPath, MAIN, 'extract', videos.talk, '-o', 'none.mp3'];
    const ended = await desk().start(command, 'ignore', { DISK_RESERVE_BYTES: String(2 ** 50) }).ended;
    expect(ended.stderr).toContain(
      `not enough disk space for temporary files in ${desk().temporary}: set TMPDIR`,
    );
    expect([ended.code, await desk().files()]).toEqual([1, expect.not.arrayContaining(['none.mp3'])]);
  },
);

it.runIf(currentRun === 'core')('leaves no temporary file behind, however it ended', async () => {
  expect(await desk().leftovers()).toEqual([]);
});
