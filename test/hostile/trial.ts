/** One file of the corpus on the way that a job's file goes, and on the way of a voice message. */
import { copyFile, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { OutputRequest } from 'soundpost-contract/output-request';
import { MediaFailure } from 'soundpost-media/failure';
import { planOutput } from 'soundpost-media/plan';
import { probe } from 'soundpost-media/probe';
import type { MediaTools } from 'soundpost-media/run';
import { prepareVoiceNote } from 'soundpost-media/voice-note';
import { extractOne, noAbort } from 'soundpost-testing/extracting';
import type { HostileFile } from './hostile-file.ts';

export interface Surroundings {
  readonly tools: MediaTools;
  /** Where the workspaces are made. */
  readonly folder: string;
  /** A playable file that carries the secret; the trial puts it beside each playlist. */
  readonly canary: string;
  /** What must not come out anywhere. */
  readonly secret: string;
}

export interface Trial {
  readonly file: HostileFile;
  readonly job: string;
  readonly voiceNote: string;
  readonly seconds: number;
  /** What should not have happened; empty when all is well. */
  readonly faults: readonly string[];
}

/** As the worker and the gateway have them, only that little is a lot here. */
const MAX_AUDIO_SECONDS = 120;
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;

const NEIGHBOUR = 'neighbour.ts';
const COMPLETED = 'completed';

/** @param output as a client asks for it. */
export async function tryFile(file: HostileFile, output: object, around: Surroundings): Promise<Trial> {
  const workspace = await mkdtemp(join(around.folder, 'job-'));
  const faults: string[] = [];
  const startedMs = performance.now();
  try {
    const input = join(workspace, file.name);
    const neighbour = join(workspace, NEIGHBOUR);
    await file.place(input, file.family === 'playlist' ? await copyOf(around.canary, neighbour) : neighbour);
    const job = await endOf(() => extract(input, workspace, output, around), faults);
    const voiceNote = await endOf(() => note(input, workspace, around), faults);
    for (const end of [job, voiceNote])
      if (!isExpected(end, file)) faults.push(`${end} instead of ${file.expected}`);
    faults.push(...(await leftovers(workspace, file, [job, voiceNote])));
    faults.push(...(await leaks(workspace, file, around.secret)));
    return { file, job, voiceNote, seconds: (performance.now() - startedMs) / 1000, faults };
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

async function copyOf(canary: string, path: string): Promise<string> {
  await copyFile(canary, path);
  return path;
}

async function extract(
  input: string,
  workspace: string,
  output: object,
  { tools, secret }: Surroundings,
): Promise<void> {
  const probed = await probe(tools, input, { signal: noAbort });
  const plan = planOutput(OutputRequest.parse(output), probed);
  const made = await extractOne({
    ...{ tools, input, probe: probed, plan, workspace, signal: noAbort },
    outputPath: join(workspace, 'output'),
    maxAudioSeconds: MAX_AUDIO_SECONDS,
    maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  const { size } = await stat(made.output.path);
  const isCorrect = size === made.output.sizeBytes && size > 0 && size <= MAX_OUTPUT_BYTES;
  const isAudio = made.output.durationSeconds > 0 && made.output.durationSeconds <= MAX_AUDIO_SECONDS + 1;
  if (!isCorrect || !isAudio) throw new Error(`not what it says: ${JSON.stringify(made.output)}`);
  if (JSON.stringify([probed, made]).includes(secret)) throw new Error('the secret is in the answer');
}

async function note(input: string, workspace: string, { tools }: Surroundings): Promise<void> {
  const output = join(workspace, 'voice.ogg');
  const made = await prepareVoiceNote({
    ...{ tools, input, output, workspace, signal: noAbort },
    maxAudioSeconds: MAX_AUDIO_SECONDS,
  });
  const head = (await readFile(made.path)).subarray(0, 4).toString('latin1');
  if (head !== 'OggS' || made.waveform.length !== 64)
    throw new Error(`no voice note: ${JSON.stringify(made)}`);
}

/** `completed`, the code of the failure, or a fault: everything else would be tried again, or show as an error of ours. */
async function endOf(work: () => Promise<void>, faults: string[]): Promise<string> {
  try {
    await work();
    return COMPLETED;
  } catch (error) {
    if (error instanceof MediaFailure) {
      if (/[/\\]|CANARY/.test(error.details)) faults.push(`a failure tells too much: ${error.details}`);
      return error.code;
    }
    faults.push(`failed otherwise: ${error instanceof Error ? `${error.stack}` : String(error)}`);
    return 'fault';
  }
}

function isExpected(end: string, { expected }: HostileFile): boolean {
  return expected === 'either' || (expected === COMPLETED) === (end === COMPLETED);
}

async function leftovers(
  workspace: string,
  file: HostileFile,
  [job = '', voiceNote = '']: readonly string[],
): Promise<string[]> {
  const allowed = [file.name, NEIGHBOUR];
  if (job === COMPLETED) allowed.push('output');
  if (voiceNote === COMPLETED) allowed.push('voice.ogg');
  const names = await readdir(workspace);
  return names.filter((name) => !allowed.includes(name)).map((name) => `left behind: ${name}`);
}

async function leaks(workspace: string, file: HostileFile, secret: string): Promise<string[]> {
  const faults: string[] = [];
  for (const name of ['output', 'voice.ogg']) {
    const bytes = await readFile(join(workspace, name)).catch(() => Buffer.alloc(0));
    if (bytes.includes(secret)) faults.push(`the secret is in ${name} of ${file.name}`);
  }
  return faults;
}
