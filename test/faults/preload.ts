/**
 * Loaded into a process with `node --import`: ends or stops it at a named point. The points are taken from outside, where
 * the service touches the world (files, processes, sockets, BullMQ), so that the service itself knows of no tests.
 *
 * FAULT_KILLS names a folder. A file in it that is called like a point arms this point: the first process that gets there
 * takes the file away and gets the signal that stands in it (SIGKILL unless another one does). A file called
 * `<point>@<job id>` stays, is for this job only, and gets a line for each process that it ended.
 */
import childProcess from 'node:child_process';
import diagnostics from 'node:diagnostics_channel';
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { flushCompileCache, syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import { basename, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Job, Queue, Worker } from 'bullmq';
import type { Point } from './points.ts';

const folder = process.env.FAULT_KILLS ?? '';
/** The points are those of a job: a gateway publishes files too, and is not meant. */
const isWorker = process.argv[2] === 'worker';

// A process that is killed never writes what it has compiled, and the next one would begin anew.
setTimeout(flushCompileCache, 3000).unref();

/** @param about what names the job: its id, or a path or a text that has it in it */
function reach(point: Point, about = ''): void {
  if (!isWorker) return;
  const armed = join(folder, point);
  const taken = `${armed}.${process.pid}`;
  const jobId = /job_[0-9a-z]+/.exec(about)?.[0];
  const poison = `${armed}@${jobId}`;
  if (existsSync(poison)) {
    appendFileSync(poison, `${process.pid}\n`);
    process.kill(process.pid, 'SIGKILL');
  }
  try {
    // Of several processes that are there at once the file ends one.
    renameSync(armed, taken);
  } catch {
    return;
  }
  const signal = readFileSync(taken, 'utf8').trim() || 'SIGKILL';
  rmSync(taken);
  process.kill(process.pid, signal as NodeJS.Signals);
}

// What a process really holds shows only once its garbage is collected: asked by SIGUSR2, it does so and writes it down.
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
process.on('SIGUSR2', () => {
  collect();
  const path = join(folder, `memory.${process.pid}`);
  writeFileSync(`${path}.new`, JSON.stringify(process.memoryUsage()));
  renameSync(`${path}.new`, path);
});

// Files. Workspaces of jobs are called after them.
const { open, mkdtemp, rename } = files;

files.mkdtemp = (async (prefix: string, ...rest: []) => {
  const made = await mkdtemp(prefix, ...rest);
  if (basename(prefix).startsWith('job_')) reach('workspace-made', made);
  return made;
}) as typeof files.mkdtemp;

files.open = async (path, ...rest) => {
  const handle = await open(path, ...rest);
  if (basename(String(path)) === 'source') {
    const write = handle.write.bind(handle) as (...args: unknown[]) => ReturnType<typeof handle.write>;
    handle.write = (async (...args: unknown[]) => {
      const written = await write(...args);
      reach('during-download', String(path));
      return written;
    }) as typeof handle.write;
  }
  return handle;
};

files.rename = async (from, to) => {
  const [source, target] = [String(from), String(to)];
  if (target.includes('/.unfinished/')) {
    reach(basename(source) === 'voice' ? 'before-voice-rendition' : 'before-publish', source);
  }
  const isPublished = source.includes('/.unfinished/') && target.includes('/files/');
  if (isPublished) reach('temporary-name', target);
  await rename(from, to);
  if (isPublished) reach('renamed', target);
};

// Processes. At its start a worker tries the sandbox, without a workspace.
const begun = <Started>(text: string, start: () => Started): Started => {
  const tool = /\/workspaces\/.*\/job_/.test(text) && /(?:^|\s|\/)(ffprobe|ffmpeg)\s/.exec(text)?.[1];
  if (tool === 'ffprobe') reach('downloaded', text);
  if (tool === 'ffmpeg') reach('before-encoding', text);
  const started = start();
  // Long enough for the tool to have begun, too short for it to have ended.
  if (tool === 'ffprobe') setTimeout(() => reach('analyzing', text), 15);
  if (tool === 'ffmpeg') setTimeout(() => reach('encoding', text), 40);
  return started;
};

const { spawn } = childProcess;
childProcess.spawn = ((command: string, args: string[], ...rest: []) =>
  begun(args.join(' '), () => spawn(command, args, ...rest))) as typeof spawn;
syncBuiltinESMExports();

// The same of those that the starter is told of: frames of the kind RUN (packages/media/src/start.c).
const HEADER_BYTES = 12;
const RUN = 1;
function wordsOfRun(bytes: unknown): string | undefined {
  if (!Buffer.isBuffer(bytes) || bytes.length <= HEADER_BYTES) return undefined;
  if (bytes.readUInt32LE(0) !== bytes.length - HEADER_BYTES || bytes.readUInt32LE(4) !== RUN)
    return undefined;
  const words = bytes.toString('utf8', HEADER_BYTES).split('\0');
  return words.flatMap((word) => (word.startsWith('arg ') ? [word.slice('arg '.length)] : [])).join(' ');
}
const { write } = Socket.prototype;
Socket.prototype.write = function (this: Socket, ...sent: unknown[]): boolean {
  const words = wordsOfRun(sent[0]);
  const send = (): boolean => Reflect.apply(write, this, sent);
  return words === undefined ? send() : begun(words, send);
};

// BullMQ: what is taken, added and ended.
type Processing = { processJob(job: Job, ...rest: unknown[]): Promise<unknown> };
const worker = Worker.prototype as unknown as Processing;
const { processJob } = worker;
const takenAt: Readonly<Record<string, Point>> = {
  extract: 'taken',
  completion: 'before-fan-out',
  webhook: 'webhook-taken',
  voice: 'voice-taken',
};
worker.processJob = function (this: Processing, job: Job, ...rest: unknown[]) {
  const point = takenAt[job.queueName];
  if (point !== undefined) reach(point, job.id);
  return processJob.call(this, job, ...rest);
};

const ends: Readonly<Record<string, readonly [before: Point, after: Point]>> = {
  extract: ['published', 'completed'],
  completion: ['after-fan-out', 'fan-out-recorded'],
  webhook: ['before-webhook-recorded', 'webhook-recorded'],
  voice: ['before-voice-recorded', 'voice-recorded'],
};
const { moveToCompleted } = Job.prototype;
Job.prototype.moveToCompleted = async function (this: Job, ...args) {
  const points = ends[this.queueName];
  if (points !== undefined) reach(points[0], this.id);
  const next = await moveToCompleted.apply(this, args);
  if (points !== undefined) reach(points[1], this.id);
  return next;
};

const { add } = Queue.prototype;
Queue.prototype.add = function (this: Queue, ...args) {
  if (this.name === 'voice') reach('between-announcements', args[2]?.jobId);
  if (args[0] === 'voice.updated') reach('before-voice-update', args[2]?.jobId);
  return add.apply(this, args);
};

// Requests: undici's, of which the global fetch is one, go to the gateway, and those of node:http to webhooks.
interface Told {
  readonly request: { readonly method: string; readonly path: string };
}
const onRequest = (channel: string, path: string, point: Point): void => {
  diagnostics.subscribe(channel, (message) => {
    const { request } = message as Told;
    if (request.method === 'POST' && request.path.startsWith(path)) reach(point);
  });
};
onRequest('undici:request:create', '/message/send', 'before-gateway-call');
onRequest('undici:request:headers', '/message/send', 'after-gateway-call');
onRequest('http.client.request.start', '/hook', 'before-webhook-post');
onRequest('http.client.response.finish', '/hook', 'after-webhook-post');
