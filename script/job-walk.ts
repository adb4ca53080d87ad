/**
 * Which files a job runs, in the order in which it comes to them: starts `serve`, waits until it is idle, submits a small video at an address for an MP3 with a
 * webhook, and prints what ran until the webhook came and had not run while the service was idle.
 *
 *   node script/job-walk.ts [--write]     --write: into docs/architecture.md
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePorts } from 'soundpost-testing/ports';

export interface JobWalk {
  /** In the order in which the job came to them, each with the first of its functions that ran. */
  readonly ran: readonly { readonly file: string; readonly first: string }[];
  readonly loaded: readonly string[];
}

interface Ran {
  readonly loaded: readonly string[];
  readonly ran: readonly { readonly id: number; readonly file: string; readonly name: string }[];
}

const KEY = 'sp_jobwalk1_0123456789012345678901234567890123456789';
/** Longer than the distance between two looks of anything that looks by itself at a service without work. */
const IDLE_MS = 12_000;

export async function walkOfJob(root: string): Promise<JobWalk> {
  const folder = mkdtempSync(join(tmpdir(), 'soundpost-walk-'));
  const video = join(folder, 'talk.mp4');
  const inputs = ['testsrc2=size=160x120:duration=2', 'sine=frequency=440:duration=2'];
  const made = inputs.flatMap((input) => ['-f', 'lavfi', '-i', input]);
  execFileSync('ffmpeg', ['-v', 'error', ...made, '-c:v', 'mpeg4', '-c:a', 'aac', video]);
  const told = Promise.withResolvers<void>();
  const outside = createServer((request, response) => {
    if (request.method !== 'POST') return void createReadStream(video).pipe(response);
    request.resume().on('end', () => response.writeHead(204).end(told.resolve));
  });
  outside.listen(0, '127.0.0.1');
  await once(outside, 'listening');
  const address = `127.0.0.1:${(outside.address() as AddressInfo).port}`;
  const [api = 0, gateway = 0] = await freePorts(2);
  const hooks = join(import.meta.dirname, 'job-walk-hooks.ts');
  const service = spawn(process.execPath, ['--import', hooks, 'src/main.ts', 'serve'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      ...{ DATA_DIR: folder, API_PORT: `${api}`, GATEWAY_PORT: `${gateway}`, LOG_LEVEL: 'error' },
      ...{ BOOTSTRAP_API_KEY: KEY, OUTBOUND_ALLOW: address },
    },
  });
  try {
    const url = `http://127.0.0.1:${api}`;
    const died = once(service, 'exit').then(() => {
      throw new Error('the service ended');
    });
    // It is waited for below; at the end it dies because it is told to.
    died.catch(() => undefined);
    await Promise.race([isReady(url), died]);
    // What the start left to be done.
    await delay(IDLE_MS);
    await ranSince(service);
    await delay(IDLE_MS);
    const idle = new Set((await ranSince(service)).ran.map(({ id }) => id));
    const job = {
      source: { type: 'url', url: `http://${address}/talk.mp4` },
      output: { format: 'mp3' },
      options: { webhook: `http://${address}/told` },
    };
    const answer = await fetch(`${url}/v1/extract`, {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify(job),
    });
    if (answer.status !== 202) throw new Error(`the job was not taken: ${await answer.text()}`);
    await Promise.race([told.promise, died]);
    const { loaded, ran } = await ranSince(service);
    const first = new Map<string, string>();
    for (const { id, file, name } of ran) if (!idle.has(id) && !first.has(file)) first.set(file, name);
    return { loaded, ran: [...first].map(([file, name]) => ({ file, first: name })) };
  } finally {
    service.kill('SIGTERM');
    if (service.exitCode === null) await once(service, 'exit');
    outside.closeAllConnections();
    outside.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function ranSince(service: ChildProcess): Promise<Ran> {
  const answer = once(service, 'message') as Promise<[Ran]>;
  service.send('ran');
  return (await answer)[0];
}

async function isReady(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/health/ready`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.status === 200) return;
    await delay(200);
  }
}

const PAGE = join(import.meta.dirname, '../docs/architecture.md');
const BEGIN = '<!-- written by script/job-walk.ts -->\n';
const END = '<!-- end of what script/job-walk.ts has written -->\n';

/** The files that the page lists, in its order. */
export function walkOfPage(): string[] {
  const [, list = ''] = readFileSync(PAGE, 'utf8').split(BEGIN);
  return [...(list.split(END)[0] ?? '').matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = '']) => file);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
  const { ran } = await walkOfJob(join(import.meta.dirname, '..'));
  const list = ran.map(({ file, first }, nth) => `${nth + 1}. \`${file}\`: ${first}\n`).join('');
  if (values.write) {
    const [before = '', rest = ''] = readFileSync(PAGE, 'utf8').split(BEGIN);
    writeFileSync(PAGE, `${before}${BEGIN}${list}${END}${rest.split(END)[1] ?? ''}`);
  } else process.stdout.write(list);
}
