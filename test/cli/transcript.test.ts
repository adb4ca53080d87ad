/** `extract --transcript`: what is said, by a transcriber of this machine and by a service that has one. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, TestService } from '../api/api-fixture.ts';
import { dumpRedis } from '../end-to-end/redis-dump.ts';
import { useVideos } from '../end-to-end/videos.ts';
import {
  hear,
  sendJson,
  startTranscriber,
  type TranscriberStub,
} from '../followups/transcripts/transcriber-stub.ts';
import { useDesk } from './command-line.ts';

const videos = useVideos();
const desk = useDesk();
let transcriber: TranscriberStub;
let service: TestService;

beforeAll(async () => {
  transcriber = await startTranscriber();
  service = await TestService.start({ environment: { TRANSCRIBER_URL: transcriber.url } });
});
afterAll(async () => {
  await service.close();
  await transcriber.close();
});

const path = (name: string): string => join(desk().folder, name);

describe.each(['alone', 'by a service'])('extract --transcript, %s', (where) => {
  beforeAll(() => {
    desk().environment =
      where === 'alone'
        ? { TRANSCRIBER_URL: transcriber.url }
        : { SOUNDPOST_SERVER: service.url, SOUNDPOST_API_KEY: service.key };
  });

  it('writes the words beside the audio, in the form that the name says', async () => {
    transcriber.answer = hear;
    const [audio, words] = [`${where.length}.mp3`, `${where.length}.srt`];
    const args = ['extract', videos.talk, '-o', audio, '--transcript', words, '--language', 'en', '--json'];
    const ended = await desk().soundpost(args);
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining(`${words}: transcript`)]);
    const answer: Json = JSON.parse(ended.stdout.toString());
    expect(answer).toMatchObject({
      file: path(audio),
      outputFile: { format: 'mp3' },
      transcript: { file: path(words), language: 'en' },
    });
    expect(await readFile(path(words), 'utf8')).toMatch(
      /^1\n00:00:00,000 --> 00:00:0\d,\d{3}\nPart \d+\.\n$/,
    );
    expect(transcriber.asked.at(-1)?.fields).toMatchObject({ language: 'en', model: 'whisper-1' });
  });

  it('says why there are none, and leaves the audio', async () => {
    transcriber.answer = (response) => sendJson(response, 400, {});
    const audio = `refused-${where.length}.mp3`;
    const ended = await desk().soundpost([
      'extract',
      videos.talk,
      '-o',
      audio,
      '--transcript',
      'refused.vtt',
    ]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('the transcriber answered 400');
    expect((await readFile(path(audio))).length).toBeGreaterThan(0);
  });
});

describe('jobs download --name, of a transcript', () => {
  beforeAll(() => {
    desk().environment = { SOUNDPOST_SERVER: service.url, SOUNDPOST_API_KEY: service.key };
  });
  const outputs = [
    { name: 'full', format: 'mp3' },
    { name: 'words', format: 'transcript' },
  ];

  it('waits while it is pending, and saves it then', async () => {
    const slow = await service.outside.stalling('slow.mp4', videos.talk);
    const jobId = await service.submit({ source: { type: 'url', url: slow.url }, outputs });
    const saying = Promise.withResolvers<void>();
    const asked = transcriber.asked.length;
    transcriber.answer = async (response, one, nth) => {
      await saying.promise;
      hear(response, one, nth);
    };
    const saved = desk().soundpost(['jobs', 'download', jobId, '--name', 'words', '-o', 'pending.vtt']);
    await until('it watches the job', async () =>
      [...(await dumpRedis(service.redis.socketPath)).keys()].some((key) => key.includes(':streams:')),
    );
    slow.letGo();
    await until('the transcriber is asked', () => transcriber.asked.length > asked);
    const { status, transcripts } = await service.job(jobId);
    expect([status, transcripts[0].status]).toEqual(['completed', 'pending']);
    saying.resolve();
    expect(await saved).toMatchObject({ code: 0 });
    const text = await readFile(path('pending.vtt'));
    const { outputFiles } = await service.job(jobId);
    expect(createHash('sha256').update(text).digest('hex')).toBe(outputFiles[1].sha256);
  });

  it('says why it could not be made, and writes nothing', async () => {
    transcriber.answer = (response) => sendJson(response, 400, {});
    const url = await service.outside.file('talk.mp4', videos.talk);
    const jobId = await service.submit({ source: { type: 'url', url }, outputs });
    const ended = await desk().soundpost(['jobs', 'download', jobId, '--name', 'words', '-o', 'failed.vtt']);
    expect([ended.code, ended.stderr]).toEqual([
      1,
      expect.stringContaining('the transcript failed: the transcriber answered 400'),
    ]);
    expect(await readdir(desk().folder)).not.toContain('failed.vtt');
  });
});

describe('extract --transcript, wrong', () => {
  beforeAll(() => {
    desk().environment = {};
  });

  it.each([
    [['--transcript', 'a.vtt'], 'no transcriber is configured; set TRANSCRIBER_URL'],
    [['--transcript', 'a.doc'], 'needs one of these extensions: .vtt, .srt, .json, .txt'],
    [['--transcript', 'a.vtt', '--language', 'English!'], '--language: must be a BCP 47'],
    [['--language', 'en'], '--language: only for a transcript'],
    [['--also', 'words=transcript'], 'for a transcript use --transcript talk.vtt'],
    [['--also', 'a=mp3,name=b'], '--also: "a=mp3,name=b" sets name twice; NAME=FORMAT'],
    [['--also', 'a=mp3,format=opus'], '--also: "a=mp3,format=opus" sets format twice; NAME=FORMAT'],
    [['--also', 'a'], '--also: "a" is not NAME=FORMAT'],
  ])('%j', async (args, told) => {
    const ended = await desk().soundpost(['extract', videos.talk, ...args]);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(told)]);
  });
});
