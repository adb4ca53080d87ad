/** An attempt: transcribes a part, and after the last one writes the text (decisions A8). */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'soundpost-base/logger';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import { redisNow } from 'soundpost-kit/redis/clock';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { wavHead } from 'soundpost-media/notes/pcm-file';
import type { JobRecord } from '../../jobs/job-record.ts';
import { besideAudio } from '../../jobs/names.ts';
import type { TranscriptAudio, TranscriptOutcome, TranscriptPayload } from '../../jobs/payloads.ts';
import type { Attempt, Tried } from '../kind.ts';
import { type PartAnswer, type Transcriber, transcribePart } from './client.ts';
import { nextPart, openRecording, Recording, transcriptOf, withHeard } from './recording.ts';
import { writeSubtitles } from './subtitles.ts';

export interface TranscriptServices {
  /** Undefined: none is configured; transcripts accepted before are retried for a day. */
  readonly transcriber: Transcriber | undefined;
  readonly storage: Storage;
  /** For storage operations: retries while the storage is down. */
  readonly retryUntilUp: <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>;
  readonly workspaces: Workspaces;
  /** How long the text is kept. */
  readonly outputTtlSeconds: number;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  readonly logger: Logger;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
  /** Of a part; default OpenAI's limit. */
  readonly mostPartBytes?: number;
}

type Turn = Tried<TranscriptOutcome>;

/** @throws the reason of `signal` when it aborts; then nothing has happened */
export async function takeTurn(
  audio: TranscriptAudio,
  payload: TranscriptPayload,
  attempt: Attempt,
  signal: AbortSignal,
  services: TranscriptServices,
): Promise<Turn> {
  const logger = services.logger.child({ jobId: payload.jobId, transcript: payload.name });
  const turn = { audio, payload, attempt, signal, services: { ...services, logger } };
  try {
    return await services.workspaces.use('transcript', (workspace) => turnIn(workspace, turn));
  } catch (error) {
    signal.throwIfAborted();
    logger.warn({ err: error }, 'a turn of a transcript failed');
    return again('the transcript could not be made', attempt);
  }
}

/** Shared by the steps of an attempt. */
interface TurnOf {
  readonly audio: TranscriptAudio;
  readonly payload: TranscriptPayload;
  readonly attempt: Attempt;
  readonly signal: AbortSignal;
  readonly services: TranscriptServices;
}

async function turnIn(workspace: string, turn: TurnOf): Promise<Turn> {
  const { audio, attempt, signal, services } = turn;
  const { storage, transcriber } = services;
  if (transcriber === undefined) return again('there is no transcriber', attempt);
  const retryUntilUp = <Result>(work: () => Promise<Result>) => services.retryUntilUp(signal, work);
  const keys = besideAudio(audio);
  const keep = (recording: Recording): Promise<unknown> =>
    retryUntilUp(() => storage.write(keys.heard, Readable.from([JSON.stringify(recording)])));

  let recording = await retryUntilUp(() => readHeard(storage, keys.heard));
  if (recording === undefined) {
    recording = await retryUntilUp(async () => {
      const wav = await storage.read(audio.storageKey).catch(orMissing);
      return wav && openRecording(addAbortSignal(signal, wav), services.mostPartBytes);
    });
    if (recording === undefined) return gone();
    await keep(recording);
  }
  const part = nextPart(recording);
  if (part === undefined) return write(workspace, recording, turn);
  const path = join(workspace, 'part.wav');
  if (!(await retryUntilUp(() => writePart(path, part, audio, signal, storage)))) return gone();
  const asked = { path, seconds: part.seconds, language: audio.language };
  const startedAt = performance.now();
  const answer = await ask(transcriber, asked, signal, services);
  const exchange = { httpStatus: answer.httpStatus, latencyMs: Math.round(performance.now() - startedAt) };
  if (answer.kind !== 'heard') return { ...conclude(answer, attempt, services.logger), ...exchange };
  recording = withHeard(recording, answer.heard);
  await keep(recording);
  const heard = { ...exchange, host: 'answered' } as const;
  return nextPart(recording) !== undefined
    ? { outcome: 'step', ...heard }
    : { ...(await write(workspace, recording, turn)), ...heard };
}

/** Answers whether the audio still exists. */
async function writePart(
  path: string,
  { at, bytes }: NonNullable<ReturnType<typeof nextPart>>,
  audio: TranscriptAudio,
  signal: AbortSignal,
  storage: Storage,
): Promise<boolean> {
  const range = { start: at, end: at + bytes - 1 };
  const samples = await storage.read(audio.storageKey, range).catch(orMissing);
  if (samples === undefined) return false;
  const file = createWriteStream(path);
  file.write(wavHead(bytes));
  await pipeline(samples, file, { signal });
  return true;
}

/** The text of the whole transcript. */
async function write(
  workspace: string,
  recording: Recording,
  { audio, payload: { jobId, name }, signal, services }: TurnOf,
): Promise<Turn> {
  const { storage, retryUntilUp } = services;
  const { subtitles, timeline, filename } = audio;
  const transcript = transcriptOf(recording, timeline.startOffset, audio.language);
  const content = Buffer.from(writeSubtitles(transcript, subtitles));
  const written = join(workspace, 'text');
  await writeFile(written, content);
  const { key, sizeBytes } = await retryUntilUp(signal, () =>
    storage.publish(written, besideAudio(audio).text),
  );
  if ((await audioOf(jobId, name, services)) === undefined) {
    // The job's files were erased while this one was written: erase it too.
    await retryUntilUp(signal, () => storage.remove(key));
    return gone();
  }
  const file = {
    name,
    storageKey: key,
    filename,
    size: sizeBytes,
    duration: transcript.durationSeconds,
    sha256: createHash('sha256').update(content).digest('hex'),
    expiresAt: new Date(redisNow() + services.outputTtlSeconds * 1000).toISOString(),
    timeline,
    format: 'transcript' as const,
    subtitles,
    language: transcript.language,
  };
  return { outcome: 'done', result: { status: 'completed', file } };
}

/** After its end, a transcript's audio is useless. */
export async function removeTranscriptAudio(
  { jobId, name }: TranscriptPayload,
  { storage, readJob }: Pick<TranscriptServices, 'storage' | 'readJob'>,
): Promise<void> {
  const record = await readJob(jobId);
  const audio = record?.result?.transcripts?.find((one) => one.name === name);
  if (audio === undefined) return;
  await Promise.all([audio.storageKey, besideAudio(audio).heard].map((key) => storage.remove(key)));
}

/** Undefined if the job or its files are gone. */
export async function audioOf(
  jobId: string,
  name: string,
  { readJob }: Pick<TranscriptServices, 'readJob'>,
): Promise<TranscriptAudio | undefined> {
  const record = await readJob(jobId);
  return record === undefined || record.erased
    ? undefined
    : record.result?.transcripts?.find((one) => one.name === name);
}

async function readHeard(storage: Storage, key: string): Promise<Recording | undefined> {
  const stored = await storage.read(key).catch(orMissing);
  return stored && Recording.parse(JSON.parse(await text(stored)));
}

function orMissing(error: unknown): undefined {
  if (!(error instanceof ObjectNotFound)) throw error;
}

async function ask(
  transcriber: Transcriber,
  part: Parameters<typeof transcribePart>[1],
  signal: AbortSignal,
  { observer, tracing = noTracing }: TranscriptServices,
): Promise<PartAnswer> {
  const startedAt = performance.now();
  const attributes = {
    'http.request.method': 'POST',
    'server.address': new URL(transcriber.url).hostname,
  };
  const answer = await tracing.span(
    'POST transcription',
    attributes,
    async (note) => {
      const answered = await transcribePart(transcriber, part, signal);
      note({ 'soundpost.outcome': answered.kind });
      return answered;
    },
    'client',
  );
  observer?.transcriptTried(observedTry[answer.kind], (performance.now() - startedAt) / 1000);
  return answer;
}

const observedTry = { heard: 'heard', 'not-now': 'not_now', refused: 'refused' } as const;

function conclude(answer: Exclude<PartAnswer, { kind: 'heard' }>, attempt: Attempt, logger: Logger): Turn {
  const { kind, error, said } = answer;
  logger.warn({ error, said, try: attempt.number }, 'the transcriber did not transcribe a part');
  return kind === 'refused'
    ? { ...failed(error), host: 'answered' }
    : { ...again(error, attempt, answer.retryAfterSeconds), host: 'failed' };
}

function again(error: string, { last }: Attempt, retryAfterSeconds?: number): Turn {
  return last ? failed(error) : { outcome: 'retry', error, retryAfterSeconds };
}

/** @param details without addresses, because callers see it */
export function failed(details: string): Turn {
  const error = { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made', details } as const;
  return { outcome: 'done', result: { status: 'failed', error }, error: details };
}

export function gone(): Turn {
  return failed('the audio is no longer available');
}
