/**
 * The demo: starts everything over a temporary folder, sends one video through it as a client would, and shows what happens.
 * With --once it stops then: exit code 0, or 1 with the job's error.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, openAsBlob } from 'node:fs';
import { access, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { errorCatalogue } from '../src/contract/errors.ts';
import { Job } from '../src/contract/job.ts';
import { isWebhookSigned } from '../src/signing/standard-webhooks.ts';

/** One of the three people that every loopback instance has as contacts. */
const RECIPIENT = '12025550101';
const INSTANCE = 'main';
const SAMPLE_TEXT =
  'Hello! This is Soundpost. It takes the sound out of a video, and hands it to you as a voice message.';
const POLL_MS = 200;
const BAR_WIDTH = 30;

class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}

const Accepted = z.object({ success: z.literal(true), data: z.object({ jobId: z.string() }) });
const JobAnswer = z.object({ success: z.literal(true), data: Job });
const Secret = z.object({ success: z.literal(true), data: z.object({ secret: z.string() }) });
const Refused = z.object({
  success: z.literal(false),
  error: z.object({ code: z.string(), message: z.string(), details: z.string().optional() }),
});

interface Service {
  readonly api: string;
  readonly inbox: string;
  readonly key: string;
  readonly ended: Promise<unknown>;
  stop(): Promise<void>;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { once: { type: 'boolean', default: false } },
});
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

/** The last line of the bar, so that a log gets each only once. */
let drawn = '';

const folder = await mkdtemp(join(tmpdir(), 'soundpost-demo-'));
try {
  process.exitCode = await demo(positionals[0], values.once);
} catch (error) {
  say(`✗ ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function demo(video: string | undefined, stopAfterwards: boolean): Promise<number> {
  const source = await prepareSource(video);
  const receiver = await startReceiver();
  const service = await startService(receiver.address).catch((error: unknown) => {
    receiver.close();
    throw error;
  });
  try {
    await runJob(service, source, receiver);
    if (!stopAfterwards) {
      say('\nEverything keeps running; Ctrl-C stops it.');
      await Promise.race([service.ended, interrupted()]);
    }
    return 0;
  } finally {
    await service.stop();
    receiver.close();
  }
}

async function prepareSource(video: string | undefined): Promise<string> {
  if (video === undefined) {
    say('▸ making a short talking video');
    return makeSample(join(folder, 'soundpost-sample.mp4'));
  }
  if (/^https?:\/\//.test(video)) {
    return video;
  }
  const path = resolve(video);
  await access(path).catch(() => {
    throw new DemoFailure(`there is no file ${video}`);
  });
  return path;
}

/** Speech by ffmpeg's own synthesiser where it was built in (Debian's is), by macOS' elsewhere. */
function makeSample(path: string): string {
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=25'];
  const encode = [
    '-shortest',
    '-c:v',
    'libx264',
    '-preset',
    'veryfast',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
    '-b:a',
    '96k',
    '-ar',
    '48000',
    '-y',
    path,
  ];
  const ffmpeg = (...speech: string[]): void => {
    execFileSync('ffmpeg', ['-v', 'error', '-nostdin', ...picture, ...speech, ...encode], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  };
  try {
    ffmpeg('-f', 'lavfi', '-i', `flite=text='${SAMPLE_TEXT}':voice=slt`);
  } catch {
    const speech = join(folder, 'speech.aiff');
    execFileSync('say', ['-o', speech, SAMPLE_TEXT]);
    ffmpeg('-i', speech);
  }
  return path;
}

interface Receiver {
  readonly address: string;
  /** Resolves with the next notification that has the job's id. */
  notified(jobId: string): Promise<{ headers: Record<string, string>; body: string }>;
  close(): void;
}

/** The caller's side of a webhook. */
async function startReceiver(): Promise<Receiver> {
  const seen: { headers: Record<string, string>; body: string }[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    seen.push({ headers, body: Buffer.concat(chunks).toString('utf8') });
    response.end();
    server.emit('notified');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    async notified(jobId) {
      for (;;) {
        const found = seen.find(({ body }) => body.includes(jobId));
        if (found !== undefined) {
          return found;
        }
        await once(server, 'notified', { signal: AbortSignal.timeout(30_000) });
      }
    },
    close: () => server.close(),
  };
}

async function startService(webhookAddress: string): Promise<Service> {
  say('▸ starting API, worker, gateway and Redis');
  const key = `sp_${randomBytes(4).toString('hex')}_${randomBytes(16).toString('hex')}`;
  const child = spawn(process.execPath, [join(import.meta.dirname, '../src/main.ts'), 'serve'], {
    env: {
      ...process.env,
      DATA_DIR: join(folder, 'data'),
      API_PORT: '0',
      GATEWAY_PORT: '0',
      BOOTSTRAP_API_KEY: key,
      OUTBOUND_ALLOW: webhookAddress,
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'fatal',
      REDIS_URL: '',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const addresses = await readAddresses(child, ended);
  return {
    ...addresses,
    key,
    ended,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function readAddresses(
  child: ChildProcess,
  ended: Promise<unknown>,
): Promise<{ api: string; inbox: string }> {
  const lines: string[] = [];
  const reading = (async () => {
    if (child.stdout === null) {
      return undefined;
    }
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      const [api] = /(?<=^API\s+)http\S+/m.exec(lines.join('\n')) ?? [];
      const [inbox] = /(?<=^Inbox\s+)http\S+/m.exec(lines.join('\n')) ?? [];
      if (api !== undefined && inbox !== undefined) {
        return { api, inbox };
      }
    }
    return undefined;
  })();
  const addresses = await Promise.race([reading, ended.then(() => undefined)]);
  if (addresses === undefined) {
    throw new DemoFailure('the service did not start');
  }
  return addresses;
}

async function runJob(service: Service, source: string, receiver: Receiver): Promise<void> {
  const startedMs = Date.now();
  say(`▸ submitting ${basename(source)}`);
  const jobId = await submit(service, source, receiver);
  const job = await follow(service, jobId);
  const file = job.outputFile;
  if (file === null) {
    throw new DemoFailure('the completed job has no file');
  }
  await mkdir('demo-output', { recursive: true });
  const saved = join('demo-output', file.filename);
  const download = await fetch(file.url);
  if (!download.ok || download.body === null) {
    throw new DemoFailure(`the download answered ${download.status}`);
  }
  await pipeline(Readable.fromWeb(download.body), createWriteStream(saved));
  say(`✓ audio     ${saved}`);
  say(
    `            ${file.format} (${file.codec}), ${file.duration.toFixed(2)} s, ${(file.size / 1024).toFixed(1)} KiB, ${file.bitrate}, ${file.sampleRate} Hz, ${file.channels} channel(s)`,
  );
  await showWebhook(service, receiver, jobId);
  await showVoiceMessage(service, jobId);
  say(`✓ done in   ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
  say(`\nListen in the voice inbox: ${service.inbox}`);
}

async function submit(service: Service, source: string, receiver: Receiver): Promise<string> {
  const options = {
    webhook: `http://${receiver.address}/soundpost`,
    voiceMessage: { instance: INSTANCE, number: RECIPIENT },
  };
  const output = { format: 'mp3' };
  const isUrl = /^https?:\/\//.test(source);
  const form = new FormData();
  if (!isUrl) {
    form.append('request', JSON.stringify({ output, options }));
    form.append('file', await openAsBlob(source), basename(source));
  }
  const response = await fetch(`${service.api}/v1/extract`, {
    method: 'POST',
    headers: { 'X-API-Key': service.key, ...(isUrl ? { 'Content-Type': 'application/json' } : {}) },
    body: isUrl ? JSON.stringify({ source: { type: 'url', url: source }, output, options }) : form,
  });
  return parseAnswer(Accepted, await response.json()).data.jobId;
}

/** Polls as any client would and draws the bar. */
async function follow(service: Service, jobId: string): Promise<Job> {
  for (;;) {
    const { data: job } = await getJob(service, jobId);
    drawBar(job);
    if (job.status === 'completed') {
      return job;
    }
    await delay(POLL_MS);
  }
}

async function getJob(service: Service, jobId: string): Promise<z.infer<typeof JobAnswer>> {
  const response = await fetch(`${service.api}/v1/status/${jobId}`, {
    headers: { 'X-API-Key': service.key },
  });
  return parseAnswer(JobAnswer, await response.json());
}

function drawBar({ progress, currentStep, status }: Job): void {
  const filled = Math.round((progress / 100) * BAR_WIDTH);
  const bar = '█'.repeat(filled).padEnd(BAR_WIDTH, '░');
  const line = `  ${bar} ${String(progress).padStart(3)} %  ${currentStep ?? status}`;
  if (process.stdout.isTTY) {
    process.stdout.write(`\r\u001b[K${line}${status === 'completed' ? '\n' : ''}`);
  } else if (line !== drawn) {
    say(line);
  }
  drawn = line;
}

async function showWebhook(service: Service, receiver: Receiver, jobId: string): Promise<void> {
  const { headers, body } = await receiver.notified(jobId);
  const response = await fetch(`${service.api}/v1/webhooks/secret`, {
    headers: { 'X-API-Key': service.key },
  });
  const { secret } = parseAnswer(Secret, await response.json()).data;
  const signed = {
    'webhook-id': headers['webhook-id'] ?? '',
    'webhook-timestamp': headers['webhook-timestamp'] ?? '',
    'webhook-signature': headers['webhook-signature'] ?? '',
  };
  if (!isWebhookSigned(signed, body, secret, Date.now())) {
    throw new DemoFailure('the signature of the webhook is not valid');
  }
  const { event } = z.object({ event: z.string() }).parse(JSON.parse(body));
  say(`✓ webhook   ${event}, signature valid`);
}

async function showVoiceMessage(service: Service, jobId: string): Promise<void> {
  for (;;) {
    const { voiceMessage } = (await getJob(service, jobId)).data;
    if (voiceMessage?.status === 'sent') {
      say(
        `✓ voice     delivered to ${RECIPIENT} on the loopback network as ${INSTANCE} (${voiceMessage.messageStatus})`,
      );
      return;
    }
    if (voiceMessage?.status === 'failed' || voiceMessage?.status === 'unknown') {
      const { code, message } = voiceMessage.error ?? { code: 'unknown', message: '' };
      throw new DemoFailure(`the voice message was not sent: ${code} ${message}`);
    }
    await delay(POLL_MS);
  }
}

function parseAnswer<Schema extends z.ZodType>(schema: Schema, answer: unknown): z.output<Schema> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) {
    return parsed.data;
  }
  const { error } = Refused.parse(answer);
  const remedy =
    error.code in errorCatalogue ? errorCatalogue[error.code as keyof typeof errorCatalogue].remedy : '';
  throw new DemoFailure(
    `${error.code}: ${error.message}${error.details ? ` (${error.details})` : ''}. ${remedy}`,
  );
}

async function interrupted(): Promise<void> {
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}
