/** State of a job's transcripts, from the records of the jobs that make them. */
import type { TranscriptState } from 'soundpost-contract/transcripts';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, unlessUnreadable } from 'soundpost-kit/redis/record';
import { fetchFollowUp, isNeverBegun } from '../../jobs/bullmq-internals.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { transcriptId } from '../../jobs/names.ts';
import { type StoredTranscript, type TranscriptAudio, TranscriptOutcome } from '../../jobs/payloads.ts';

export interface TranscriptProgress {
  readonly audio: TranscriptAudio;
  readonly state: TranscriptState;
  /** Only of a completed one. */
  readonly file: StoredTranscript | undefined;
  /** Whether it failed because the key's minutes of the day did not suffice. */
  readonly isOverBudget?: boolean | undefined;
}

/** The transcripts that a recording is heard for, its own first. */
export function heardTogether({ result }: JobRecord, name: string): readonly TranscriptAudio[] {
  return (result?.transcripts ?? []).filter((one) => (one.heardAs ?? one.name) === name);
}

/** In the order of the outputs; empty for an unfinished job. One round trip a recording. */
export async function readTranscripts(
  redis: Redis,
  { jobId, result, erased }: JobRecord,
): Promise<TranscriptProgress[]> {
  const audios = result?.transcripts ?? [];
  const own = audios.filter(({ heardAs }) => heardAs === undefined);
  const fetched = new Map(
    own.map(({ name }) => [name, fetchFollowUp(redis, 'transcript', transcriptId(jobId, name))]),
  );
  return Promise.all(
    audios.map(async (audio) => {
      const heard = audio.heardAs ?? audio.name;
      const { result: ended, hasEnded = true, isThere = true } = (await fetched.get(heard)) ?? {};
      if (ended !== undefined) return progressOf(audio, await outcomeOf(ended));
      // Erased audio is not waited for, although the attempt that notices may come hours later.
      const isOver =
        hasEnded ||
        erased ||
        (!isThere && (await isNeverBegun(redis, 'transcript', transcriptId(jobId, heard), jobId)));
      if (isOver) return progressOf(audio, { status: 'failed', error: LOST });
      return {
        audio,
        state: { name: audio.name, status: 'pending', language: null, error: null },
        file: undefined,
      };
    }),
  );
}

function outcomeOf(text: string): Promise<TranscriptOutcome> {
  return unlessUnreadable(
    () => readText(TranscriptOutcome, text),
    ({ message }): TranscriptOutcome => ({
      status: 'failed',
      error: { code: 'TRANSCRIPT_FAILED', message: `its result cannot be read: ${message}` },
    }),
  );
}

/** For a transcript that BullMQ itself ended. */
export const LOST = { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made' } as const;

/** For an ended transcript. @param outcome of its recording */
export function progressOf(audio: TranscriptAudio, outcome: TranscriptOutcome): TranscriptProgress {
  const { name } = audio;
  const file = outcome.status === 'completed' ? outcome.files.find((one) => one.name === name) : undefined;
  if (file !== undefined) {
    return { audio, state: { name, status: 'completed', language: file.language, error: null }, file };
  }
  const { error, isOverBudget } =
    outcome.status === 'failed' ? outcome : { error: LOST, isOverBudget: undefined };
  return { audio, state: { name, status: 'failed', language: null, error }, file, isOverBudget };
}
