/** The command line against a running service. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Bucket } from 'soundpost-testing/bucket';
import { currentRun } from 'soundpost-testing/by-run';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Json, useService } from '../api/api-fixture.ts';
import { useVideos } from '../end-to-end/videos.ts';
import { type Ended, MAIN, useDesk } from './command-line.ts';

const run = promisify(execFile);
const videos = useVideos();
const desk = useDesk();
const service = useService({ parts: ['worker', 'gateway'] });
beforeAll(() => {
  desk().environment = { SOUNDPOST_SERVER: service().url, SOUNDPOST_API_KEY: service().key };
});

const path = (name: string) => join(desk().folder, name);
const text = ({ stdout }: Ended): string => stdout.toString('utf8');
const json = (ended: Ended): Json => JSON.parse(text(ended));
const sha256 = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex');

describe('extract', () => {
  it.runIf(currentRun === 'core')('uploads a file, follows the job and saves what it made', async () => {
    const ended = await desk().soundpost([
      'extract',
      videos.talk,
      '-f',
      'opus',
      '--json',
      '--name',
      'speech',
    ]);
    const { file, jobId, outputFile, inputFile } = json(ended);
    expect([file, inputFile.name]).toEqual([path('speech.opus'), 'talk.mp4']);
    expect(await sha256(file)).toBe(outputFile.sha256);
    // The address is signed: whoever has it has the file.
    expect(outputFile.url).toBeUndefined();
    expect(ended.stderr).toMatch(/^uploading\nsubmitting\n[\s\S]*saving\nspeech\.opus: opus, /);
    expect((await service().job(jobId)).status).toBe('completed');
    expect([ended.code, await desk().leftovers()]).toEqual([0, []]);
  });

  it.runIf(currentRun === 'core')('has a video probed, which leaves no file', async () => {
    const { stdout, code } = await desk().soundpost(['extract', videos.talk, '-f', 'probe', '--json']);
    const { jobId, ...found } = JSON.parse(stdout.toString());
    expect([code, found]).toEqual([0, { inputFile: (await service().job(jobId)).inputFile, warnings: [] }]);
    const shown = await desk().soundpost(['jobs', 'show', jobId]);
    expect(shown.stdout.toString()).toMatch(/^state +completed$[\s\S]*^TRACK +CODEC[^\n]*\n0 +aac /m);
    const refused = await desk().soundpost(['jobs', 'download', jobId]);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('is a probe, which makes no file'),
    ]);
    const listed = await desk().soundpost(['jobs', 'list', '--limit', '1']);
    expect(listed.stdout.toString()).toMatch(new RegExp(`^${jobId} +completed +probe `, 'm'));
  });

  it.runIf(currentRun === 'core')('has the file put to an address, and says when that failed', async () => {
    const url = await service().outside.file('put.mp4', videos.talk);
    const bucket = new Bucket();
    bucket.answer = (nth) => ({ status: nth === 1 ? 200 : 403 });
    const to = service().outside.on('/bucket/talk.mp3', bucket.handle);
    const put = await desk().soundpost(['extract', url, '--destination', `${to}?signature=abc`, '--json']);
    const { file, outputFile, destination } = json(put);
    expect([put.code, file, destination.status]).toEqual([0, null, 'completed']);
    expect(bucket.puts).toMatchObject([
      { target: '/bucket/talk.mp3?signature=abc', sha256: outputFile.sha256 },
    ]);
    const refused = await desk().soundpost(['extract', url, '--destination', `${to}?signature=abc`]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /the file was not uploaded to its destination: the destination answered with status 403; download it with "soundpost jobs download job_/,
    );
    expect(refused.stderr).not.toContain('signature');
    const [, jobId = ''] = /jobs download (job_\w+)/.exec(refused.stderr) ?? [];
    const shown = await desk().soundpost(['jobs', 'show', jobId]);
    expect(shown.stdout.toString()).toMatch(
      /^destination of audio +failed \(the destination answered with status 403\)$/m,
    );
    // One that is tried again, perhaps for a day, keeps nobody waiting.
    bucket.answer = () => ({ status: 503 });
    const later = await desk().soundpost(['extract', url, '--destination', `${to}?signature=abc`]);
    expect([later.code, later.stderr]).toEqual([
      1,
      expect.stringMatching(
        /not at its destination yet: .*503; the service keeps retrying, see "soundpost deliveries list job_/,
      ),
    ]);
    // Of several the one that failed is fetched, and none of them is written.
    const several = [
      'extract',
      url,
      '--also',
      'peaks=waveform',
      '--destination',
      `${to.replace('talk.mp3', '{name}')}`,
    ];
    bucket.answer = (_nth, { url: path = '' }) => ({ status: path.includes('peaks') ? 403 : 200 });
    service().outside.on('/bucket/audio', bucket.handle);
    service().outside.on('/bucket/peaks', bucket.handle);
    const before = await desk().files();
    const lost = await desk().soundpost(several);
    expect(await desk().files()).toEqual(before);
    expect(lost.stderr).toMatch(/download it with "soundpost jobs download job_\w+ --name peaks"/);
    expect(await desk().leftovers()).toEqual([]);
  });

  it.runIf(currentRun === 'core')(
    'sends an address on, takes standard input, and writes to standard output',
    async () => {
      const url = await service().outside.file('talk.mp4', videos.talk);
      const video = await readFile(videos.talk);
      const [fetched, piped] = await Promise.all([
        desk().soundpost(['extract', url, '-o', 'fetched.mp3', '-f', 'mp3']),
        desk().soundpost(['extract', '-', '-f', 'mp3'], video),
      ]);
      expect([fetched.code, piped.code]).toEqual([0, 0]);
      expect(piped.stdout.equals(await readFile(path('fetched.mp3')))).toBe(true);
      expect(await desk().leftovers()).toEqual([]);
    },
  );

  it.runIf(currentRun === 'all')(
    'uploads each piece with its length, past a connection that breaks',
    async () => {
      await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'anoisesrc=d=60', path('large.wav')]);
      const between = await breaking(service().url, incomingBytes);
      const ended = await desk().soundpost([
        'extract',
        'large.wav',
        '-f',
        'mp3',
        '--server',
        between.url,
        '--json',
      ]);
      between.close();
      expect(ended.stderr).toMatch(/^uploading\n/);
      expect(json(ended).inputFile.duration).toBeCloseTo(60, 1);
      expect(between.patches.length).toBeGreaterThan(1);
      expect(between.patches.every(({ length, isChunked }) => length > 0 && !isChunked)).toBe(true);
      // What had arrived was not sent again.
      expect(between.patches[1]?.length).toBeLessThan(between.patches[0]?.length ?? 0);
    },
  );

  it.runIf(currentRun === 'all')(
    'ends an upload at a signal, and leaves nothing of it at the service',
    async () => {
      await run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'anoisesrc=d=60', path('held.wav')]);
      const between = await breaking(service().url, () => new Promise(() => undefined));
      const command = [process.execPath, MAIN, 'extract', 'held.wav', '--server', between.url];
      const running = desk().start(command);
      await until('some of it is there', async () => (await incomingBytes()) > 0);
      running.signal('SIGTERM');
      expect(await running.ended).toMatchObject({ code: 130, stderr: 'uploading\nsoundpost: interrupted\n' });
      between.close();
      expect(await incomingBytes()).toBe(0);
      expect(await desk().files()).not.toContain('held.mp3');
    },
  );

  it.runIf(currentRun === 'all')(
    'keeps nothing of a download that breaks off, and says how to go on',
    async () => {
      const between = await breaking(service().url, incomingBytes, { cutsDownloads: true });
      const ended = await desk().soundpost([
        'extract',
        videos.talk,
        '-o',
        'cut.mp3',
        '--server',
        between.url,
      ]);
      between.close();
      expect(ended.stderr).toMatch(
        /soundpost: the audio is ready, but its download was interrupted; download it again with "soundpost jobs download job_/,
      );
      expect(ended.code).toBe(1);
      expect((await desk().files()).filter((name) => name.includes('cut.mp3'))).toEqual([]);
    },
  );

  it.runIf(currentRun === 'core')('tells an empty file and a text from a video', async () => {
    await writeFile(path('empty.mp4'), '');
    await writeFile(path('notes.mp4'), 'This is no video.\n'.repeat(1000));
    const ends = await Promise.all(
      ['empty.mp4', 'notes.mp4'].map((name) => desk().soundpost(['extract', name, '--json'])),
    );
    for (const ended of ends) {
      expect(ended.stderr).toContain(
        'soundpost: INVALID_VIDEO: the file is not in a known video or audio format',
      );
      expect([ended.code, json(ended).error.code]).toEqual([1, 'INVALID_VIDEO']);
    }
  });

  it.runIf(currentRun === 'core')(
    'sends a voice message, and alone by the gateway that is configured',
    async () => {
      const [byService, alone] = await Promise.all([
        desk().soundpost(['extract', videos.talk, '--send', 'main:12025550101', '--json']),
        desk().start(
          [process.execPath, MAIN, 'extract', videos.talk, '--send', 'main:12025550102', '--json'],
          'ignore',
          {
            SOUNDPOST_SERVER: '',
            GATEWAY_URL: service().gatewayUrl,
            GATEWAY_API_KEY: 'gateway-key-of-these-tests',
          },
        ).ended,
      ]);
      expect(json(byService)).toMatchObject({ file: null, voiceMessage: { status: 'sent' } });
      expect(json(alone)).toMatchObject({ file: null, voiceMessage: { status: 'sent' } });
      expect(alone.stderr).toMatch(/sending\n.*, sent to 12025550102\n$/);
    },
  );

  it.runIf(currentRun === 'all')('names a service that is not there, and a key that is none', async () => {
    const gone = `http://127.0.0.1:${await freePort()}`;
    const [away, wrongKey] = await Promise.all([
      desk().soundpost(['jobs', 'show', 'job_0000000000000000', '--server', gone]),
      desk().start([process.execPath, MAIN, 'jobs', 'list'], 'ignore', { SOUNDPOST_API_KEY: 'sp_no' }).ended,
    ]);
    expect(away.stderr).toMatch(
      /^soundpost: NETWORK_ERROR: the service did not answer: .*ECONNREFUSED.*\n {2}Check that the service is running/,
    );
    expect(wrongKey.stderr).toMatch(/^soundpost: UNAUTHORIZED: .*\n {2}Set SOUNDPOST_API_KEY to a valid key/);
    expect([away.code, wrongKey.code]).toEqual([1, 2]);
  });
});

describe('jobs', () => {
  it.runIf(currentRun === 'core')(
    'are listed, shown, watched, downloaded, cancelled and retried',
    async () => {
      const source = await service().outside.stalling('slow.mp4', videos.talk);
      const request = { source: { type: 'url', url: source.url }, output: { format: 'mp3' } };
      const jobId = await service().submit(request);
      const watching = desk().soundpost(['jobs', 'watch', jobId]);
      const cancelled = await desk().soundpost(['jobs', 'cancel', jobId]);
      expect(text(cancelled)).toBe(`cancelled ${jobId}\n`);
      const watched = await watching;
      expect([watched.code, watched.stderr]).toEqual([1, expect.stringContaining('JOB_CANCELLED')]);
      source.letGo();

      const retried = text(await desk().soundpost(['jobs', 'retry', jobId])).trim();
      const [shown, finished] = await Promise.all([
        desk().soundpost(['jobs', 'show', jobId]),
        desk().soundpost(['jobs', 'watch', retried, '--json']),
      ]);
      expect(text(shown)).toMatch(
        new RegExp(`^job +${jobId}\\nstate +cancelled\\n(.*\\n)*error +JOB_CANCELLED: `),
      );
      expect(json(finished)).toMatchObject({ jobId: retried, status: 'completed', retryOf: jobId });

      const [listed, failed, saved] = await Promise.all([
        desk().soundpost(['jobs', 'list', '--search', 'slow.mp4', '--limit', '1', '--json']),
        desk().soundpost(['jobs', 'list', '--status', 'failed']),
        desk().soundpost(['jobs', 'download', retried, '-o', 'saved.mp3']),
      ]);
      expect(json(listed).jobs.map((job: Json) => job.jobId)).toEqual([retried]);
      expect(text(failed)).toMatch(/^JOB +STATE +FORMAT +CREATED \(UTC\) +VIDEO\n/);
      expect(text(failed)).toContain(jobId);
      expect(text(failed)).not.toContain(retried);
      expect(text(saved)).toBe(`${path('saved.mp3')}\n`);
      expect(await sha256(path('saved.mp3'))).toBe(json(finished).outputFile.sha256);
    },
  );
});

describe('deliveries', () => {
  it.runIf(currentRun === 'core')('are listed, shown and sent again', async () => {
    const hook = service().outside.hook('hook', (nth) => ({ status: nth === 1 ? 500 : 204 }));
    const url = await service().outside.file('told.mp4', videos.talk);
    const jobId = await service().submit({
      source: { type: 'url', url },
      output: { format: 'mp3' },
      options: { webhook: hook.url },
    });
    await hook.got(1);
    await until('its answer is known', async () => {
      const { body } = await service().call('GET', `/v1/jobs/${jobId}/deliveries`);
      return body.data.deliveries[0]?.attempts.length === 1;
    });
    const all = await desk().soundpost(['deliveries', 'list', '--json']);
    const { deliveryId } = json(all).deliveries.find((delivery: Json) => delivery.jobId === jobId);
    const replayed = await desk().soundpost(['deliveries', 'replay', deliveryId]);
    expect(text(replayed)).toBe(`resending ${deliveryId}\n`);
    await hook.got(2);
    const resent = await desk().soundpost(['deliveries', 'resend', '--since', '2026-01-01T00:00Z']);
    expect(text(resent)).toMatch(/^resending \d+ deliver(y|ies)\n$/);
    const [shown, unknown] = await Promise.all([
      desk().soundpost(['deliveries', 'show', deliveryId]),
      desk().soundpost(['deliveries', 'show', `${jobId}-nothing`]),
    ]);
    expect(text(shown)).toMatch(
      /^delivery +job_[\s\S]*event +job\.completed\n[\s\S]*ATTEMPTED AT +ANSWER +DURATION\n\S+ +500/,
    );
    expect(unknown.stderr).toContain(`list them with "soundpost deliveries list ${jobId}"`);
    expect(unknown.code).toBe(2);
  });
});

/** Of an upload that has not arrived whole. */
async function incomingBytes(): Promise<number> {
  const folder = join(service().dataDir, 'uploads/.incoming');
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map(async (name) => (await stat(join(folder, name)).catch(() => undefined))?.size ?? 0),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A way to the service whose first upload breaks once `storedBytes` says that some of it counts; or whose downloads break. */
async function breaking(
  target: string,
  storedBytes: () => Promise<number>,
  { cutsDownloads = false }: { cutsDownloads?: boolean } = {},
) {
  const patches: { length: number; isChunked: boolean }[] = [];
  const server = createServer((incoming, response) => {
    const isPatch = incoming.method === 'PATCH' && !cutsDownloads;
    if (isPatch) {
      patches.push({
        length: Number(incoming.headers['content-length'] ?? 0),
        isChunked: incoming.headers['transfer-encoding'] !== undefined,
      });
    }
    const onward = httpRequest(`${target}${incoming.url}`, {
      method: incoming.method,
      headers: { ...incoming.headers, host: new URL(target).host },
    });
    onward.on('error', () => response.destroy());
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      if (cutsDownloads && incoming.url?.startsWith('/v1/download/')) {
        answer.once('data', (chunk: Buffer) =>
          response.write(chunk.subarray(0, 100), () => response.destroy()),
        );
        return;
      }
      answer.pipe(response);
    });
    if (isPatch && patches.length === 1) {
      let passed = 0;
      incoming.on('close', () => onward.destroy());
      incoming.on('data', (chunk: Buffer) => {
        passed += chunk.length;
        onward.write(chunk);
        if (passed < 500_000) return;
        incoming.pause();
        // Not before the service has something that counts.
        void until('some of it is there', async () => (await storedBytes()) > 0).then(() => {
          incoming.destroy();
        });
      });
      return;
    }
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    patches,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
