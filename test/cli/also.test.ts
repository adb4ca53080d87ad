/** `--also` and `jobs download --name`: several outputs of one video, alone and by a service. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Json, useService } from '../api/api-fixture.ts';
import { useVideos } from '../end-to-end/videos.ts';
import { type Ended, useDesk } from './command-line.ts';

const videos = useVideos();
const desk = useDesk();
const service = useService();

const path = (name: string) => join(desk().folder, name);
const json = (ended: Ended): Json => JSON.parse(ended.stdout.toString('utf8'));
const sha256 = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex');

const ALSO = ['--also', 'preview=opus,end=1,bitrate=64k', '--also', 'peaks=waveform,pixelsPerSecond=10'];

describe.each([
  ['alone', 'speech', 'cut'],
  ['by a service', 'words', 'piece'],
])('extract --also, %s', (where, name, cut) => {
  beforeAll(() => {
    desk().environment =
      where === 'alone' ? {} : { SOUNDPOST_SERVER: service().url, SOUNDPOST_API_KEY: service().key };
  });

  it('puts one more file for each beside the first, and says which', async () => {
    const ended = await desk().soundpost(['extract', videos.talk, ...ALSO, '--name', name, '--json']);
    expect([ended.code, ended.stderr]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `${name}-audio.mp3: mp3, .*\\n${name}-preview.opus: opus, .*\\n${name}-peaks.json: waveform, `,
        ),
      ),
    ]);
    const { file, outputFile, outputFiles } = json(ended);
    expect(outputFiles.map((each: Json) => [each.name, each.file])).toEqual([
      ['audio', path(`${name}-audio.mp3`)],
      ['preview', path(`${name}-preview.opus`)],
      ['peaks', path(`${name}-peaks.json`)],
    ]);
    expect([file, outputFile.sha256]).toEqual([outputFiles[0].file, outputFiles[0].sha256]);
    for (const each of outputFiles) expect(await sha256(each.file)).toBe(each.sha256);
    expect(outputFiles[1].duration).toBeCloseTo(1, 2);
    expect(JSON.parse(await readFile(path(`${name}-peaks.json`), 'utf8'))).toMatchObject({
      version: 2,
      bits: 8,
    });
    expect(ended.stdout.toString()).not.toMatch(/storageKey|signature/);
  });

  it('names them after -o, and overwrites nothing', async () => {
    await writeFile(path(`${cut}-peaks.json`), 'mine');
    const args = ['extract', videos.talk, '-o', `${cut}.flac`, '--also', 'peaks=waveform'];
    const refused = await desk().soundpost(args);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining(`${cut}-peaks.json already exists; --force overwrites it`),
    ]);
    const ended = await desk().soundpost([...args, '--force', '--json']);
    expect(json(ended).outputFiles.map((each: Json) => each.file)).toEqual([
      path(`${cut}.flac`),
      path(`${cut}-peaks.json`),
    ]);
  });
});

it('jobs download --name fetches one of them', async () => {
  desk().environment = { SOUNDPOST_SERVER: service().url, SOUNDPOST_API_KEY: service().key };
  const url = await service().outside.file('talk.mp4', videos.talk);
  const { jobId, outputFiles } = await service().run({
    source: { type: 'url', url },
    outputs: [
      { name: 'full', format: 'mp3' },
      { name: 'small', format: 'opus' },
    ],
  });
  const [saved, unknown, shown] = await Promise.all([
    desk().soundpost(['jobs', 'download', jobId, '--name', 'small', '-o', 'small.opus']),
    desk().soundpost(['jobs', 'download', jobId, '--name', 'other']),
    desk().soundpost(['jobs', 'show', jobId]),
  ]);
  expect(saved.code).toBe(0);
  expect(await sha256(path('small.opus'))).toBe(outputFiles[1].sha256);
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('--name: the job has no output "other"; its outputs: full, small'),
  ]);
  expect(shown.stdout.toString()).toContain('talk-small.opus: opus');
});
