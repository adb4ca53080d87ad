/**
 * The demo: starts everything over a temporary folder, sends one video through it as a client would, and shows what happens.
 * With --once it stops then: exit code 0, or 1 with the job's error.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { access, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  type CompletedJob,
  createClient,
  type SoundpostClient,
  SoundpostError,
  verifyWebhook,
} from 'soundpost-client';
import { errorCatalogue } from 'soundpost-contract/errors';
import type { Job } from 'soundpost-contract/job';
import { type Receiver, startReceiver } from './demo-parts/receiver.ts';
import { makeSample } from './demo-parts/sample.ts';
import { type Service, startService } from './demo-parts/service.ts';

/** One of the three people that every loopback instance has as contacts. */
const RECIPIENT = '12025550101';
const INSTANCE = 'main';
const OUTPUT_FOLDER = 'demo-output';
const POLL_MS = 200;
/** Exit code of what a signal ended. */
const INTERRUPTED = 130;
const BAR_WIDTH = 30;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { once: { type: 'boolean', default: false } },
});
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const folder = await mkdtemp(join(tmpdir(), 'soundpost-demo-'));
try {
  await demo(positionals[0], values.once);
} catch (error) {
  say(`✗ ${describeFailure(error)}`);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function demo(video: string | undefined, stopAfterwards: boolean): Promise<void> {
  // From here on a signal ends the demo in order: the service is a process of its own and would stay.
  const told = interrupted();
  const source = await prepareSource(video);
  const receiver = await startReceiver();
  try {
    say('▸ starting API, worker, gateway and Redis');
    const service = await startService(join(folder, 'data'), receiver.address);
    try {
      const done = runJob(service, source, receiver).then(() => true);
      if (!(await Promise.race([done, told]))) {
        // Its requests fail when the service goes.
        done.catch(() => undefined);
        process.exitCode = INTERRUPTED;
        return;
      }
      if (stopAfterwards) {
        return;
      }
      say(`\nListen in the voice inbox: ${service.inbox}`);
      say('Everything keeps running; Ctrl-C stops it.');
      await Promise.race([service.ended, told]);
    } finally {
      await service.stop();
    }
  } finally {
    receiver.close();
  }
}

async function interrupted(): Promise<false> {
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  return false;
}

async function prepareSource(video: string | undefined): Promise<string> {
  if (video === undefined) {
    say('▸ making a short talking video');
    return makeSample(join(folder, 'soundpost-sample.mp4'), folder);
  }
  if (isUrl(video)) {
    return video;
  }
  const path = resolve(video);
  await access(path).catch(() => {
    throw new Error(`there is no file ${video}`);
  });
  return path;
}

async function runJob({ api, apiKey }: Service, source: string, receiver: Receiver): Promise<void> {
  const startedMs = Date.now();
  const client = createClient({ baseUrl: api, apiKey });
  say(`▸ submitting ${basename(source)}`);
  const jobId = await submit(client, source, receiver);
  const job = await client.waitFor(jobId, { onProgress: drawBar });
  const saved = await save(client, job);
  const { outputFile: file } = job;
  say(`✓ audio     ${saved}`);
  say(
    `            ${file.format} (${file.codec}), ${file.duration.toFixed(2)} s, ${(file.size / 1024).toFixed(1)} KiB, ` +
      `${file.bitrate}, ${file.sampleRate} Hz, ${file.channels} channel(s)`,
  );
  say(`✓ webhook   ${await verifiedEvent(api, apiKey, receiver, jobId)}, signature valid`);
  say(
    `✓ voice     delivered to ${RECIPIENT} on the loopback network as ${INSTANCE} (${await delivered(client, jobId)})`,
  );
  say(`✓ done in   ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
}

async function submit(client: SoundpostClient, source: string, receiver: Receiver): Promise<string> {
  const request = {
    output: { format: 'mp3' as const },
    options: {
      webhook: `http://${receiver.address}/soundpost`,
      voiceMessage: { instance: INSTANCE, number: RECIPIENT },
    },
  };
  const { jobId } = await client.extract(
    isUrl(source) ? { source: { type: 'url', url: source }, ...request } : { file: source, ...request },
  );
  return jobId;
}

async function save(client: SoundpostClient, { jobId, outputFile }: CompletedJob): Promise<string> {
  await mkdir(OUTPUT_FOLDER, { recursive: true });
  const path = join(OUTPUT_FOLDER, outputFile.filename);
  const { body } = await client.download(jobId);
  if (body === null) {
    throw new Error('the download has no body');
  }
  await pipeline(Readable.fromWeb(body), createWriteStream(path));
  return path;
}

/** Throws when the webhook is not signed with the key's secret. */
async function verifiedEvent(
  api: string,
  apiKey: string,
  receiver: Receiver,
  jobId: string,
): Promise<string> {
  const { headers, body } = await receiver.notified(jobId);
  const answer = await fetch(`${api}/v1/webhooks/secret`, { headers: { 'X-API-Key': apiKey } });
  const { data } = (await answer.json()) as { data: { secret: string } };
  return (await verifyWebhook(headers, body, data.secret)).event;
}

/** How far the voice message is once the gateway has it. Throws when it was not sent. */
async function delivered(client: SoundpostClient, jobId: string): Promise<string> {
  for (;;) {
    const { voiceMessage } = await client.job(jobId);
    if (voiceMessage?.status === 'sent') {
      return voiceMessage.messageStatus ?? 'PENDING';
    }
    if (voiceMessage?.status === 'failed' || voiceMessage?.status === 'unknown') {
      throw new Error(`the voice message was not sent: ${voiceMessage.error?.message ?? 'no reason given'}`);
    }
    await delay(POLL_MS);
  }
}

function drawBar({ progress, currentStep, status }: Job): void {
  const filled = Math.round((progress / 100) * BAR_WIDTH);
  const bar = '█'.repeat(filled).padEnd(BAR_WIDTH, '░');
  const line = `  ${bar} ${String(progress).padStart(3)} %  ${currentStep ?? status}`;
  if (process.stdout.isTTY) {
    process.stdout.write(`\r\u001b[K${line}${status === 'completed' ? '\n' : ''}`);
  } else {
    say(line);
  }
}

function describeFailure(error: unknown): string {
  if (!(error instanceof SoundpostError)) {
    return error instanceof Error ? error.message : String(error);
  }
  const remedy =
    error.code in errorCatalogue ? errorCatalogue[error.code as keyof typeof errorCatalogue].remedy : '';
  return `${error.message}. ${remedy}`;
}

function isUrl(text: string): boolean {
  return /^https?:\/\//.test(text);
}
