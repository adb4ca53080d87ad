/** A turn of a transcript: one part of its recording is sent to the transcriber, and after the last one the text is written (decisions A8). */
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
import type { Try } from '../../jobs/announcement-tries.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { besideAudio } from '../../jobs/names.ts';
import type { TranscriptAudio, TranscriptPayload } from '../../jobs/payloads.ts';
import type { Turn } from '../../jobs/transcript-consumer.ts';
import { type PartAnswer, type Transcriber, transcribePart } from '../transcripts/client.ts';
import { nextPart, openRecording, Recording, transcriptOf, withHeard } from '../transcripts/recording.ts';
import { writeSubtitles } from '../transcripts/subtitles.ts';

export interface TranscriptServices {
  /** Undefined: none is set up here; what was accepted while there was one is tried for a day. */
  readonly transcriber: Transcriber | undefined;
  readonly storage: Storage;
  /** For what the storage is asked for: waits while it is away. */
  readonly insist: <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>;
  readonly workspaces: Workspaces;
  /** How long the text is kept. */
  readonly outputTtlSeconds: number;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  readonly logger: Logger;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
  /** Of a part; default what OpenAI's server takes. */
  readonly mostPartBytes?: number;
}

/** @throws the reason of `stopping` when that aborts; then nothing has happened */
export async function takeTranscriptTurn(
  payload: TranscriptPayload,
  attempt: Try,
  stopping: AbortSignal,
  services: TranscriptServices,
): Promise<Turn> {
  const logger = services.logger.child({ jobId: payload.jobId, transcript: payload.name });
  const turn = await tryTurn(payload, attempt, stopping, { ...services, logger });
  if (turn.outcome === 'done' && turn.result !== 'more') {
    services.observer?.transcriptEnded(turn.result.status);
  }
  return turn;
}

async function tryTurn(
  payload: TranscriptPayload,
  attempt: Try,
  stopping: AbortSignal,
  services: TranscriptServices,
): Promise<Turn> {
  try {
    return await services.workspaces.use('transcript', (workspace) =>
      turnIn(workspace, payload, attempt, stopping, services),
    );
  } catch (error) {
    stopping.throwIfAborted();
    services.logger.warn({ err: error }, 'a turn of a transcript failed');
    return again('the transcript could not be made', attempt);
  }
}

async function turnIn(
  workspace: string,
  { jobId, name }: TranscriptPayload,
  attempt: Try,
  stopping: AbortSignal,
  services: TranscriptServices,
): Promise<Turn> {
  const { storage, transcriber: asked } = services;
  const audio = await audioOf(jobId, name, services);
  if (audio === undefined) return gone();
  if (audio.notMade !== undefined) return failed(audio.notMade);
  if (asked === undefined) return again('there is no transcriber', attempt);
  const insist = <Result>(work: () => Promise<Result>) => services.insist(stopping, work);
  const keys = besideAudio(audio);
  const keep = (recording: Recording): Promise<unknown> =>
    insist(() => storage.write(keys.heard, Readable.from([JSON.stringify(recording)])));

  let recording = await insist(() => readHeard(storage, keys.heard));
  if (recording === undefined) {
    recording = await insist(async () => {
      const wav = await storage.read(audio.storageKey).catch(orMissing);
      return wav && openRecording(addAbortSignal(stopping, wav), services.mostPartBytes);
    });
    if (recording === undefined) return gone();
    await keep(recording);
  }
  let transcriber: Turn['transcriber'];
  const part = nextPart(recording);
  if (part !== undefined) {
    const path = join(workspace, 'part.wav');
    const range = { start: part.at, end: part.at + part.bytes - 1 };
    const isThere = await insist(async () => {
      const samples = await storage.read(audio.storageKey, range).catch(orMissing);
      if (samples === undefined) return false;
      const file = createWriteStream(path);
      file.write(wavHead(part.bytes));
      await pipeline(samples, file, { signal: stopping });
      return true;
    });
    if (!isThere) return gone();
    const answer = await ask(
      asked,
      { path, seconds: part.seconds, language: audio.language },
      stopping,
      services,
    );
    if (answer.kind !== 'heard') return conclude(answer, attempt, services.logger);
    transcriber = 'answered';
    recording = withHeard(recording, answer.heard);
    await keep(recording);
    if (nextPart(recording) !== undefined) return { outcome: 'done', result: 'more', transcriber };
  }
  const transcript = transcriptOf(recording, audio.timeline.startOffset, audio.language);
  const content = Buffer.from(writeSubtitles(transcript, audio.subtitles));
  const written = join(workspace, 'text');
  await writeFile(written, content);
  const { key, sizeBytes } = await insist(() => storage.publish(written, keys.text));
  if ((await audioOf(jobId, name, services)) === undefined) {
    // The files of the job were erased meanwhile: this one was not there to be erased with them.
    await insist(() => storage.remove(key));
    return gone();
  }
  const expiresAt = new Date(redisNow() + services.outputTtlSeconds * 1000).toISOString();
  return {
    outcome: 'done',
    ...(transcriber && { transcriber }),
    result: {
      status: 'completed',
      file: {
        name,
        storageKey: key,
        filename: audio.filename,
        size: sizeBytes,
        duration: transcript.durationSeconds,
        sha256: createHash('sha256').update(content).digest('hex'),
        expiresAt,
        timeline: audio.timeline,
        format: 'transcript',
        subtitles: audio.subtitles,
        language: transcript.language,
      },
    },
  };
}

/** What the transcript was made of is of no use when it has ended. */
export async function removeTranscriptAudio(
  { jobId, name }: TranscriptPayload,
  { storage, readJob }: Pick<TranscriptServices, 'storage' | 'readJob'>,
): Promise<void> {
  const record = await readJob(jobId);
  const audio = record?.result?.transcripts?.find((one) => one.name === name);
  if (audio === undefined) return;
  await Promise.all([audio.storageKey, besideAudio(audio).heard].map((key) => storage.remove(key)));
}

/** Undefined when the job or its files are gone. */
async function audioOf(
  jobId: string,
  name: string,
  { readJob }: TranscriptServices,
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
  stopping: AbortSignal,
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
      const answered = await transcribePart(transcriber, part, stopping);
      note({ 'soundpost.outcome': answered.kind });
      return answered;
    },
    'client',
  );
  observer?.transcriptTried(observedTry[answer.kind], (performance.now() - startedAt) / 1000);
  return answer;
}

const observedTry = { heard: 'heard', 'not-now': 'not_now', refused: 'refused' } as const;

function conclude(answer: Exclude<PartAnswer, { kind: 'heard' }>, attempt: Try, logger: Logger): Turn {
  const { kind, error, said } = answer;
  logger.warn({ error, said, try: attempt.number }, 'the transcriber did not transcribe a part');
  return kind === 'refused'
    ? { ...failed(error), transcriber: 'answered' }
    : { ...again(error, attempt, answer.retryAfterSeconds), transcriber: 'failed' };
}

function again(error: string, { last }: Try, retryAfterSeconds?: number): Turn {
  return last ? failed(error) : { outcome: 'retry', error, retryAfterSeconds };
}

/** @param details holds no address: callers see it */
function failed(details: string): Turn {
  const error = { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made', details } as const;
  return { outcome: 'done', result: { status: 'failed', error } };
}

function gone(): Turn {
  return failed('the audio is no longer available');
}
