/** `extract` on a terminal: what is seen there, and what Ctrl-C leaves. */
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { currentRun } from 'soundpost-testing/by-run';
import { descendants, isAlive, processesOver, programOf } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useService } from '../api/api-fixture.ts';
import { useVideos } from '../end-to-end/videos.ts';
import { MAIN, useDesk } from './command-line.ts';

const CTRL_C = '\u0003';
const videos = useVideos({ long: true });
const desk = useDesk();
const service = useService();
let web: VideoServer;
beforeAll(async () => {
  web = await serveVideos(videos.folder);
  desk().environment = { OUTBOUND_ALLOW: web.allow };
});
afterAll(() => web.close());

/** What the terminal was told to show, a state a line. */
const states = (output: string): string[] => stripVTControlCharacters(output).split(/[\r\n]+/);

describe('a terminal', () => {
  it.runIf(currentRun === 'core')(
    'shows a bar that fits it, in colour, and at the end one line of what was made',
    async () => {
      const running = desk().terminal(['extract', videos.talk, '-o', 'bar.mp3', '-f', 'mp3'], 50);
      const { code } = await running.ended;
      const seen = states(running.output());
      expect(seen).toContainEqual(expect.stringMatching(/^extracting +█+░+ +\d+ %/));
      expect(seen.every((line) => line.length < 50 || line.startsWith('bar.mp3:'))).toBe(true);
      expect(running.output()).toContain('\u001b[32m');
      // Nothing of the bar is left.
      expect(running.output().split('\r\u001b[K').at(-1)).toMatch(/^bar\.mp3: mp3, .*\r\n$/);
      expect(code).toBe(0);
    },
  );

  it.runIf(currentRun === 'all')(
    'has no colour with NO_COLOR, and lines in place of the bar where it is dumb',
    async () => {
      const [plain, dumb] = await Promise.all(
        [
          desk().terminal(['extract', videos.talk, '-o', 'plain.mp3'], 50, { NO_COLOR: '1' }),
          desk().terminal(['extract', videos.talk, '-o', 'dumb.mp3'], 50, { TERM: 'dumb' }),
        ].map(async (running) => running.ended.then(() => running.output())),
      );
      expect(plain).toContain('█');
      expect(plain).not.toContain('\u001b[32m');
      expect(dumb).not.toContain('\u001b');
      expect(dumb).toMatch(/^reading\r\nanalyzing\r\n/);
    },
  );

  it.runIf(currentRun === 'all')('is neither flooded with audio nor waited for as a video', async () => {
    const calls = [
      ['extract', videos.talk, '-o', '-'],
      ['extract', '-', '-o', 'typed.mp3'],
    ];
    const [out, input] = await Promise.all(
      calls.map(async (args) => {
        const running = desk().terminal(args);
        return [(await running.ended).code, running.output()];
      }),
    );
    expect(out).toEqual([2, expect.stringContaining('written to the terminal; give -o a file')]);
    expect(input).toEqual([2, expect.stringContaining('standard input is a terminal; redirect a video')]);
  });
});

it.runIf(currentRun === 'core')('shows a new key alone; a pipe has its audit record beside', async () => {
  const shown = desk().terminal(['keys', 'create', '--name', 'mine', '--instances', '*']);
  expect((await shown.ended).code).toBe(0);
  expect(shown.output()).toMatch(/^sp_[a-z0-9]{8}_[A-Za-z0-9]+\r\n$/);
  const create = ['keys', 'create', '--name', 'ours', '--instances', '*', '--json'];
  const { stdout, stderr } = await desk().start([process.execPath, MAIN, ...create]).ended;
  const { id, key, ...more } = JSON.parse(stdout.toString());
  expect(key).toMatch(new RegExp(`^sp_${id}_`));
  expect(more).toMatchObject({ name: 'ours', instances: ['*'] });
  expect(stderr).toContain('"audit":true');
  expect(stderr).not.toContain(key);
});

describe('Ctrl-C', () => {
  it.runIf(currentRun === 'core')('ends ffmpeg, removes everything and exits with 130', async () => {
    // ffmpeg is at it for seconds, so that nobody misses it who asks a little late.
    const busy = ['--sample-rate', '48000', '--channels', '2', '-q', 'extreme'];
    const args = ['extract', videos.long, '-o', 'long.mp3', '--start', '1', ...busy];
    const running = desk().terminal(args);
    const tools = await until('ffmpeg runs', () => {
      const found = descendants(running.pid).filter((pid) => programOf(pid) === 'ffmpeg');
      return found.length > 0 && descendants(running.pid);
    });
    running.type(CTRL_C);
    expect((await running.ended).code).toBe(130);
    expect(running.output()).toMatch(/soundpost: interrupted\r\n$/);
    await until('no process is left', () => !tools.some(isAlive));
    expect(await desk().leftovers()).toEqual([]);
    expect((await desk().files()).filter((name) => name.includes('long'))).toEqual([]);
  });

  it.runIf(currentRun === 'all')(
    'ends a download, and a second one at once whatever the first still does',
    async () => {
      web.hold();
      const running = desk().terminal(['extract', web.url('talk.mp4'), '-o', 'held.mp3']);
      await until('the download has begun', () => web.requests.includes('talk.mp4'));
      running.type(CTRL_C + CTRL_C);
      expect((await running.ended).code).toBe(130);
      web.letGo();
      expect(await desk().leftovers()).toEqual([]);
      await until('no process is left', () => processesOver(desk().temporary).length === 0);
      expect((await desk().files()).filter((name) => name.includes('held'))).toEqual([]);
    },
  );

  it.runIf(currentRun === 'core')('cancels the job at the service', async () => {
    desk().environment = { SOUNDPOST_SERVER: service().url, SOUNDPOST_API_KEY: service().key };
    const source = await service().outside.stalling('endless.mp4', join(videos.folder, 'talk.mp4'));
    const running = desk().terminal(['extract', source.url, '-o', 'cancelled.mp3']);
    await until('the service fetches it', source.begun);
    await running.says(/downloading/);
    running.type(CTRL_C);
    expect((await running.ended).code).toBe(130);
    const [, jobId = ''] = /cancelling (job_[0-9a-f]{16})/.exec(running.output()) ?? [];
    expect((await service().job(jobId)).error.code).toBe('JOB_CANCELLED');
    source.letGo();
    expect((await desk().files()).filter((name) => name.includes('cancelled'))).toEqual([]);
  });

  it.runIf(currentRun === 'all')(
    'is not needed where the terminal goes away: the job is cancelled as well',
    async () => {
      desk().environment = { SOUNDPOST_SERVER: service().url, SOUNDPOST_API_KEY: service().key };
      const source = await service().outside.stalling('left.mp4', join(videos.folder, 'talk.mp4'));
      const running = desk().terminal(['extract', source.url, '-o', 'left.mp3']);
      await until('the service fetches it', source.begun);
      await running.says(/downloading/);
      // Without script(1) there is nobody at the other end of the terminal.
      running.signal('SIGKILL');
      await until('the job is cancelled', async () => {
        const { stdout } = await desk().soundpost(['jobs', 'list', '--search', 'left.mp4', '--json']);
        return JSON.parse(stdout.toString()).jobs[0].error?.code === 'JOB_CANCELLED';
      });
      source.letGo();
    },
  );
});
