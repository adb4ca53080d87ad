/** `script/demo --once`, as somebody runs it who has just cloned the project. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { currentRun } from 'soundpost-testing/by-run';
import { fetch } from 'soundpost-testing/http';
import { descendants, isAlive } from 'soundpost-testing/processes';
import { type RunningProcess, startProcess } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { useVideos } from './videos.ts';

const DEMO = join(import.meta.dirname, '../../script/demo');

const videos = useVideos();
let folder = '';
let started: RunningProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-demo-'));
});
afterEach(async () => {
  for (const { pid, signal, exited } of started) {
    if (isAlive(pid)) signal('SIGKILL');
    await exited;
  }
  started = [];
  await rm(folder, { recursive: true, force: true });
});

/** In a folder of its own, since it leaves what it made in the one where it is called; TMPDIR shows what it leaves elsewhere. */
async function demo(...args: string[]): Promise<{ code: number | null; output: string }> {
  const running = startProcess([DEMO, ...args], { TMPDIR: folder }, folder);
  started.push(running);
  const code = await running.exited;
  return { code, output: running.output() };
}

const left = () => readdirSync(folder).filter((name) => name !== 'demo-output' && !name.endsWith('.mp4'));

it.runIf(currentRun === 'core')('makes a talking video of its own and takes it all the way', async () => {
  const { code, output } = await demo('--once');
  expect(output).toMatch(/✓ audio {5}demo-output\/soundpost-sample\.mp3/);
  expect(output).toMatch(/mp3 \(mp3\), \d+\.\d\d s, [\d.]+ KiB, \d+k, 48000 Hz/);
  expect(output).toContain('job.completed, signature valid');
  expect(output).toMatch(/✓ voice {5}delivered to 12025550101 on the loopback network/);
  // Its service is gone, and with it where the message could be heard.
  expect(output).not.toContain('http');
  expect(output).toContain('100 %');
  expect(code).toBe(0);
  expect(existsSync(join(folder, 'demo-output', 'soundpost-sample.mp3'))).toBe(true);
  expect(left()).toEqual([]);
});

it.runIf(currentRun === 'all')('takes a video that it is given', async () => {
  const { code, output } = await demo('--once', videos.talk);
  expect(output).toContain('demo-output/talk.mp3');
  expect(code).toBe(0);
  expect(existsSync(join(folder, 'demo-output', 'talk.mp3'))).toBe(true);
});

it.runIf(currentRun === 'all')('ends with 1 and INVALID_VIDEO on a text that is called a video', async () => {
  await writeFile(join(folder, 'notes.mp4'), 'This is no video.\n'.repeat(100));
  const { code, output } = await demo('--once', 'notes.mp4');
  expect(output).toContain('✗ INVALID_VIDEO');
  expect(code).toBe(1);
  expect(left()).toEqual([]);
});

it.runIf(currentRun === 'all')(
  'ends with 1 on a file that is not there, before it starts anything',
  async () => {
    const { code, output } = await demo('--once', 'nothing.mp4');
    expect(output).toContain('there is no file nothing.mp4');
    expect(output).not.toContain('starting');
    expect(code).toBe(1);
  },
);

it.runIf(currentRun === 'all')(
  'stays without --once, with a link to the message, until it is interrupted, and leaves no process then',
  async () => {
    const running = startProcess([DEMO, videos.talk], { TMPDIR: folder }, folder);
    started.push(running);
    const link = await running.says(/Listen in the voice inbox: (http\S+)/);
    await running.says(/Ctrl-C stops it/);
    expect((await fetch(link)).status).toBe(200);
    const pids = [running.pid, ...descendants(running.pid)];
    expect(pids.length).toBeGreaterThan(2);
    running.signal('SIGINT');
    expect(await running.exited).toBe(0);
    await until('no process is left', () => !pids.some(isAlive));
    expect(left()).toEqual([]);
  },
);

it.runIf(currentRun === 'all')('leaves no process when it is ended before the job is', async () => {
  // Hours of silence, so that the job is not done before anybody has seen that it was submitted.
  const hours = join(videos.folder, 'hours.mka');
  const silence = ['-f', 'lavfi', '-i', 'anullsrc=r=48000:cl=stereo:d=7200'];
  await promisify(execFile)('ffmpeg', ['-v', 'error', ...silence, '-c:a', 'flac', hours]);
  const running = startProcess([DEMO, '--once', hours], { TMPDIR: folder }, folder);
  started.push(running);
  await running.says(/▸ submitting/);
  const pids = [running.pid, ...descendants(running.pid)];
  expect(pids.length).toBeGreaterThan(2);
  running.signal('SIGTERM');
  expect(await running.exited).toBe(130);
  await until('no process is left', () => !pids.some(isAlive));
  expect(left()).toEqual([]);
});
