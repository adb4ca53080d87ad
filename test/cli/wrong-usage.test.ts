/** What is wrong is named with what to do, before any work; exit codes as main.ts gives them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SoundpostError } from 'soundpost-client/error';
import { type ErrorCode, errorCatalogue, ServiceError } from 'soundpost-contract/errors';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { exitCodeOf, Interrupted, sentenceOf } from '../../src/cli/ending.ts';
import { createProgram } from '../../src/cli/program.ts';

let folder = '';
let video = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-usage-'));
  video = join(folder, 'talk.mp4');
  await writeFile(video, 'a video that nobody reads');
  vi.stubEnv('DATA_DIR', folder);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

async function refusal(args: readonly string[]): Promise<{ code: number; sentence: string }> {
  const said: string[] = [];
  const program = createProgram({ say: (line) => said.push(line), complain: (line) => said.push(line) });
  const error: unknown = await program.parseAsync(args, { from: 'user' }).then(
    () => new Error('the command succeeded'),
    (thrown: unknown) => thrown,
  );
  expect(said).toEqual([]);
  return { code: exitCodeOf(error), sentence: sentenceOf(error) ?? (error as Error).message };
}

describe('extract', () => {
  it.each<[what: string, args: () => string[], sentence: RegExp]>([
    ['a file that is not there', () => ['nothing.mp4'], /no such file: nothing\.mp4; give the path of/],
    ['a folder', () => ['.'], /^\. is a folder; give a file in it/],
    ['another scheme', () => ['ftp://a.example/b.mp4'], /only http:\/\/ and https:\/\/ URLs work/],
    [
      'a password in the video’s address',
      () => ['https://me:secret@a.example/talk.mp4'],
      /^the URL of a\.example contains a name or a password, which Soundpost does not send; download the video yourself/,
    ],
    [
      'a header that is none',
      () => ['https://a.example/talk.mp4', '-H', 'Authorization'],
      /^--header: use "Name: value"/,
    ],
    [
      'a header that is ours',
      () => ['https://a.example/talk.mp4', '-H', 'Range: bytes=0-'],
      /^--header: Range is set by the service itself/,
    ],
    ['a header for a file', () => [video, '-H', 'A: b'], /^--header: only for an http\(s\) URL/],
    ['no video', () => [], /missing required argument 'video'/],
    ['an unknown format', () => [video, '-f', 'mp9'], /'mp9' is invalid\. Allowed choices are mp3, aac/],
    ['an unknown option', () => [video, '--normalise'], /Did you mean --normalize\?/],
    [
      'an end before the start',
      () => [video, '--start', '9', '--end', '3'],
      /--end: must be greater than start/,
    ],
    ['a time that is none', () => [video, '--start', 'soon'], /--start: "soon" is not a time; write 70/],
    [
      'no number',
      () => [video, '--loudness', 'loud'],
      /--loudness: "loud" is not a number; use LUFS, such as -14/,
    ],
    [
      'a bitrate of a lossless format',
      () => [video, '-f', 'wav', '-b', '192k'],
      /--bitrate: wav is lossless/,
    ],
    [
      'a rate that the format lacks',
      () => [video, '--sample-rate', '9000'],
      /--sample-rate: must be one of 8000/,
    ],
    [
      'a further output without a format',
      () => [video, '--also', 'peaks'],
      /--also: "peaks" is not NAME=FORMAT\[,FIELD=VALUE…\], such as preview=opus/,
    ],
    [
      'a further output with a field that is none',
      () => [video, '--also', 'peaks=waveform,bitrate=192k'],
      /--also peaks: Unrecognized key: "bitrate"/,
    ],
    [
      'a fault in a further output',
      () => [video, '--also', 'low=mp3,bitrate=999k'],
      /--also low bitrate: must be 32k to 320k for mp3/,
    ],
    [
      'a fault in the first beside others',
      () => [video, '-b', '999k', '--also', 'peaks=waveform'],
      /--bitrate: must be 32k to 320k for mp3/,
    ],
    [
      'two outputs of one name',
      () => [video, '--also', 'audio=opus'],
      /--also audio name: "audio" is the name of another output/,
    ],
    [
      'several files on standard output',
      () => [video, '-o', '-', '--also', 'peaks=waveform'],
      /--also: several files cannot go to standard output; give -o a file or a folder/,
    ],
    [
      'an option of a file for a probe',
      () => [video, '-f', 'probe', '-q', 'low', '--no-metadata'],
      /--quality, --no-metadata: not for a probe, which makes no file/,
    ],
    [
      'a place for what a probe finds',
      () => [video, '-f', 'probe', '-o', 'talk.mp3'],
      /-o: a probe makes no file; it prints what it finds, with --json as JSON/,
    ],
    [
      'a probe beside a file',
      () => [video, '-f', 'probe', '--also', 'low=mp3'],
      /--format: must not be probe, which makes no file/,
    ],
    [
      'a channel that is none',
      () => [video, '--channel', 'middle'],
      /--channel: must be left, right or an index from 0/,
    ],
    [
      'short pauses on the clock of the video',
      () => [video, '--timeline', 'source', '--trim-silence'],
      /--trim-silence: needs timeline: audio, because it changes the clock/,
    ],
    ['no INSTANCE', () => [video, '--send', '+1202'], /--send: "\+1202" is not INSTANCE:NUMBER/],
    ['an INSTANCE that is none', () => [video, '--send', 'a b:1'], /--send: instance must be the name or id/],
    ['a delay of nothing', () => [video, '--delay', '5'], /--delay: only for a voice message; add --send/],
    ['no gateway', () => [video, '--send', 'main:1202'], /--send needs a gateway: start "soundpost serve"/],
    [
      'no folder for the output',
      () => [video, '-o', 'none/a.mp3'],
      /no such folder: none; create it: mkdir -p none$/,
    ],
    [
      'no folder, with a name that a shell would part',
      () => [video, '-o', "my friend's/a.mp3"],
      /create it: mkdir -p 'my friend'\\''s'$/,
    ],
    [
      'audio and JSON on one stream',
      () => [video, '-o', '-', '--json'],
      /would both go to standard output; give -o a file/,
    ],
    [
      'a destination without a service',
      () => [video, '--destination', 'https://a.example/'],
      /--destination: only a service uploads files/,
    ],
    [
      'a webhook without a service',
      () => [video, '--webhook', 'https://a.example/'],
      /--webhook: only a service sends webhooks/,
    ],
    ['no address', () => [video, '--server', 'here'], /--server: "here" is not a URL such as/],
    [
      'a password in the address',
      () => [video, '--server', 'http://me:secret@a.example/api'],
      /^--server: leave the name and password out of the URL, http:\/\/a\.example\/api;/,
    ],
    [
      'no key',
      () => [video, '--server', 'http://a.example'],
      /http:\/\/a\.example needs a key: set SOUNDPOST_API_KEY/,
    ],
  ])('%s', async (_what, args, sentence) => {
    const refused = await refusal(['extract', ...args()]);
    expect(refused.sentence).toMatch(sentence);
    expect(refused.code).toBe(2);
  });
});

it.each<[args: string[], sentence: RegExp]>([
  [['extrakt'], /unknown command 'extrakt'\n\(Did you mean extract\?\)/],
  [['jobs', 'list', '--limit', 'all', '--server', 'http://a.example'], /SOUNDPOST_API_KEY/],
  [['jobs', 'list', '--status', 'done'], /Allowed choices are queued, processing, completed, failed/],
])('%j', async (args, sentence) => {
  const refused = await refusal(args);
  expect(refused.sentence).toMatch(sentence);
  expect(refused.code).toBe(2);
});

describe('exit codes', () => {
  const codes = Object.keys(errorCatalogue) as ErrorCode[];
  const of = (exitCode: number) =>
    codes.filter((code) => exitCodeOf(new ServiceError(code, '')) === exitCode);

  it('are 2 for what only another command line, file or key can change', () => {
    expect(of(2)).toEqual([
      ...['UNAUTHORIZED', 'FORBIDDEN', 'INVALID_REQUEST', 'INVALID_SOURCE', 'INVALID_OUTPUT'],
      ...['INVALID_WEBHOOK', 'INVALID_JOB_ID', 'TOO_MANY_JOBS', 'JOB_NOT_FOUND', 'BATCH_NOT_FOUND'],
      ...[
        'UPLOAD_NOT_FOUND',
        'NOT_FOUND',
        'METHOD_NOT_ALLOWED',
        'UNSUPPORTED_MEDIA_TYPE',
        'IDEMPOTENCY_MISMATCH',
      ],
    ]);
  });

  it('are 1 for work that failed, also at a service, and 130 for an interrupt', () => {
    expect(of(1).length + of(2).length).toBe(codes.length);
    const away = { code: 'NETWORK_ERROR', message: 'the service did not answer' } as const;
    expect(exitCodeOf(new SoundpostError(away, { httpStatus: 0 }))).toBe(1);
    expect(exitCodeOf(new Interrupted())).toBe(130);
  });
});
