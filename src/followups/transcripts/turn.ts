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
import { readText, withEdition } from 'soundpost-kit/redis/record';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { wavHead } from 'soundpost-media/notes/pcm-file';
import type { JobRecord } from '../../jobs/job-record.ts';
import { besideAudio } from '../../jobs/names.ts';
import type {
  StoredTranscript,
  TranscriptAudio,
  TranscriptOutcome,
  TranscriptPayload,
} from '../../jobs/payloads.ts';
import type { Attempt, Tried } from '../kind.ts';
import { heardTogether } from '../state/transcripts.ts';
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
  /** Spends the key's minutes of the day; false if it has too few left. Undefined: no limit. */
  readonly spend?: ((tenant: string, seconds: number) => Promise<boolean>) | undefined;
  readonly logger: Logger;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
  /** Of a part; default OpenAI's limit. */
  readonly mostPartBytes?: number;
}

type Turn = Tried<TranscriptOutcome>;

/** Of a part, while a caller waits: with the default schedule over five minutes. */
const AWAITED_ATTEMPTS = 3;
/** Between them: a caller does not wait longer than for the whole schedule. */
const LONGEST_AWAITED_PAUSE_SECONDS = 300;

/** The recording, then the other transcripts that it is heard for. */
export type Recorded = readonly [TranscriptAudio, ...TranscriptAudio[]];

/** @throws the reason of `signal` when it aborts; then nothing has happened */
export async function takeTurn(
  audios: Recorded,
  payload: TranscriptPayload,
  attempt: Attempt,
  signal: AbortSignal,
  services: TranscriptServices,
): Promise<Turn> {
  const logger = services.logger.child({ jobId: payload.jobId, transcript: payload.name });
  const isLast = attempt.last || (audios[0].isAwaited === true && attempt.number >= AWAITED_ATTEMPTS);
  const turn = {
    audios,
    payload,
    attempt: { ...attempt, last: isLast },
    signal,
    services: { ...services, logger },
  };
  try {
    return await services.workspaces.use('transcript', (workspace) => turnIn(workspace, turn));
  } catch (error) {
    signal.throwIfAborted();
    logger.warn({ err: error }, 'a turn of a transcript failed');
    return again('the transcript could not be made', turn.attempt);
  }
}

/** Shared by the steps of an attempt. */
interface TurnOf {
  readonly audios: Recorded;
  readonly payload: TranscriptPayload;
  readonly attempt: Attempt;
  readonly signal: AbortSignal;
  readonly services: TranscriptServices;
}

async function turnIn(workspace: string, turn: TurnOf): Promise<Turn> {
  const { payload, attempt, signal, services } = turn;
  const [audio] = turn.audios;
  const { storage, transcriber } = services;
  if (transcriber === undefined) return again('there is no transcriber', attempt);
  const retryUntilUp = <Result>(work: () => Promise<Result>) => services.retryUntilUp(signal, work);
  const keys = besideAudio(audio);
  const keep = (recording: Recording): Promise<unknown> =>
    retryUntilUp(() => writeHeard(storage, keys.heard, recording));

  let recording = await retryUntilUp(() => readHeard(storage, keys.heard));
  if (recording === undefined) {
    recording = await retryUntilUp(async () => {
      const wav = await storage.read(audio.storageKey).catch(orMissing);
      return wav && openRecording(addAbortSignal(signal, wav), services.mostPartBytes);
    });
    if (recording === undefined) return gone();
  }
  const { owedSeconds = 0 } = recording;
  if (owedSeconds > 0) {
    // Whole, before the first part is sent: none is paid for without a text in the end.
    const mayBeHeard = await services.spend?.(payload.tenant, owedSeconds);
    if (mayBeHeard === false) return minutesSpent();
    recording = { ...recording, owedSeconds: 0 };
    await keep(recording);
  }
  const part = nextPart(recording);
  if (part === undefined) return write(workspace, recording, turn);
  const path = join(workspace, 'part.wav');
  if (!(await retryUntilUp(() => writePart(path, part, audio, signal, storage)))) return gone();
  const { language, task, prompt, temperature, words } = audio;
  const asked = { path, seconds: part.seconds, language, task, prompt, temperature, words };
  const startedAt = performance.now();
  const answer = await ask(transcriber, asked, signal, services);
  const exchange = { httpStatus: answer.httpStatus, latencyMs: Math.round(performance.now() - startedAt) };
  if (answer.kind !== 'heard') {
    const { retryAfterSeconds = 0 } = answer.kind === 'refused' ? {} : answer;
    const isTooLate = audio.isAwaited === true && retryAfterSeconds > LONGEST_AWAITED_PAUSE_SECONDS;
    const last = attempt.last || isTooLate;
    return { ...conclude(answer, { ...attempt, last }, services.logger), ...exchange };
  }
  recording = withHeard(recording, answer.heard);
  await keep(recording);
  return nextPart(recording) !== undefined
    ? { outcome: 'step', ...exchange }
    : { ...(await write(workspace, recording, turn)), ...exchange };
}

const minutesSpent = (): Turn => failed(MINUTES_SPENT, true);

const MINUTES_SPENT =
  'the recording is longer than what is left of the key’s transcript minutes of the day (TRANSCRIPT_MINUTES_PER_DAY); submit it again when GET /v1/usage shows enough';

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

/** The whole transcript, in each requested form. */
async function write(
  workspace: string,
  recording: Recording,
  { audios, payload: { jobId, name }, signal, services }: TurnOf,
): Promise<Turn> {
  const { storage, retryUntilUp } = services;
  const [{ timeline, language }] = audios;
  const transcript = transcriptOf(recording, timeline.startOffset, language);
  const files: StoredTranscript[] = [];
  for (const audio of audios) {
    const content = Buffer.from(await writeSubtitles(transcript, audio.subtitles));
    const written = join(workspace, 'text');
    await writeFile(written, content);
    const { key, sizeBytes } = await retryUntilUp(signal, () =>
      storage.publish(written, besideAudio(audio).text),
    );
    files.push({
      name: audio.name,
      storageKey: key,
      filename: audio.filename,
      size: sizeBytes,
      duration: transcript.durationSeconds,
      sha256: createHash('sha256').update(content).digest('hex'),
      expiresAt: new Date(redisNow() + services.outputTtlSeconds * 1000).toISOString(),
      timeline,
      format: 'transcript',
      subtitles: audio.subtitles,
      language: transcript.language,
    });
  }
  if ((await audiosOf(jobId, name, services)).length === 0) {
    // The job's files were erased while these were written: erase them too.
    await retryUntilUp(signal, () => Promise.all(files.map(({ storageKey }) => storage.remove(storageKey))));
    return gone();
  }
  return { outcome: 'done', result: { status: 'completed', files } };
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

/** A {@link Recorded}; empty if the job or its files are gone. */
export async function audiosOf(
  jobId: string,
  name: string,
  { readJob }: Pick<TranscriptServices, 'readJob'>,
): Promise<readonly TranscriptAudio[]> {
  const record = await readJob(jobId);
  return record === undefined || record.erased ? [] : heardTogether(record, name);
}

async function readHeard(storage: Storage, key: string): Promise<Recording | undefined> {
  const stored = await storage.read(key).catch(orMissing);
  return stored && readText(Recording, await text(stored));
}

function orMissing(error: unknown): undefined {
  if (!(error instanceof ObjectNotFound)) throw error;
}

/** @param key of `besideAudio` */
export async function writeHeard(storage: Storage, key: string, recording: Recording): Promise<void> {
  await storage.write(key, Readable.from([JSON.stringify(withEdition(recording))]));
}

/** Of a part, observed and traced. @throws the reason of `signal` when it aborts */
export async function ask(
  transcriber: Transcriber,
  part: Parameters<typeof transcribePart>[1],
  signal: AbortSignal,
  { observer, tracing = noTracing }: Pick<TranscriptServices, 'observer' | 'tracing'>,
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
  return kind === 'refused' ? failed(error) : again(error, attempt, answer.retryAfterSeconds);
}

function again(error: string, { last }: Attempt, retryAfterSeconds?: number): Turn {
  return last ? failed(error) : { outcome: 'retry', error, retryAfterSeconds };
}

/** @param details without addresses, because callers see it */
export function failed(details: string, isOverBudget?: true): Turn {
  const error = { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made', details } as const;
  const result = { status: 'failed', error, ...(isOverBudget && { isOverBudget }) } as const;
  return { outcome: 'done', result, error: details };
}

export function gone(): Turn {
  return failed('the audio is no longer available');
}
