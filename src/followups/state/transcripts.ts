/** State of a job's transcripts, from the records of the jobs that make them. */
import type { TranscriptState } from 'soundpost-contract/transcripts';
import type { Redis } from 'soundpost-kit/redis/connection';
import { fetchFollowUp } from '../../jobs/bullmq-internals.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { transcriptId } from '../../jobs/names.ts';
import { type StoredTranscript, type TranscriptAudio, TranscriptOutcome } from '../../jobs/payloads.ts';

export interface TranscriptProgress {
  readonly audio: TranscriptAudio;
  readonly state: TranscriptState;
  /** Only of a completed one. */
  readonly file: StoredTranscript | undefined;
}

/** In the order of the outputs; empty for an unfinished job. One round trip each. */
export async function readTranscripts(
  redis: Redis,
  { jobId, result, erased }: JobRecord,
): Promise<TranscriptProgress[]> {
  return Promise.all(
    (result?.transcripts ?? []).map(async (audio) => {
      const { result: ended, hasEnded } = await fetchFollowUp(
        redis,
        'transcript',
        transcriptId(jobId, audio.name),
      );
      if (ended !== undefined) return progressOf(audio, TranscriptOutcome.parse(JSON.parse(ended)));
      // Erased audio is not waited for, although the attempt that notices may come hours later.
      if (hasEnded || erased) return progressOf(audio, { status: 'failed', error: LOST });
      return {
        audio,
        state: { name: audio.name, status: 'pending', language: null, error: null },
        file: undefined,
      };
    }),
  );
}

/** For a transcript that BullMQ itself ended. */
export const LOST = { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made' } as const;

/** For an ended transcript. */
export function progressOf(audio: TranscriptAudio, outcome: TranscriptOutcome): TranscriptProgress {
  const { name } = audio;
  return outcome.status === 'completed'
    ? {
        audio,
        state: { name, status: 'completed', language: outcome.file.language, error: null },
        file: outcome.file,
      }
    : {
        audio,
        state: { name, status: 'failed', language: null, error: outcome.error },
        file: undefined,
      };
}
