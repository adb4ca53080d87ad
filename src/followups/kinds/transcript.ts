/** Transcripts, a part at a try (decisions A8). What makes them is loaded with the first. */

import { transcriptId, webhookId } from '../../jobs/names.ts';
import { type TranscriptAudio, type TranscriptOutcome, TranscriptPayload } from '../../jobs/payloads.ts';
import type { JobFollowUps } from '../job-followups.ts';
import { type FollowUpKind, scheduled } from '../kind.ts';
import { NOT_MADE } from '../state/destinations.ts';
import { LOST, progressOf } from '../state/transcripts.ts';
import type { TranscriptServices } from '../transcripts/turn.ts';

interface TranscriptOptions extends TranscriptServices {
  readonly followUps: Pick<JobFollowUps, 'addWebhook' | 'addPut' | 'addDestinationWebhook'>;
  /** When the transcriber is tried, seconds after the first time. */
  readonly scheduleSeconds: readonly number[];
  /** Parts that are under way at once, in all processes together. */
  readonly parts: number;
  /** How long the transcriber may take for a part. */
  readonly partMs: number;
  readonly logSeconds: number;
}

/** Longer than a part may take: the storage has to answer before and after it. */
const TURN_MARGIN_MS = 5 * 60 * 1000;
/** There is one transcriber. */
const HOST = 'transcriber';

const load = () => import('../transcripts/turn.ts');

export function transcriptKind(
  options: TranscriptOptions,
): FollowUpKind<TranscriptPayload, TranscriptAudio, TranscriptOutcome> {
  const { parts, partMs, scheduleSeconds, observer, logSeconds } = options;
  const leaseMs = partMs + TURN_MARGIN_MS;
  const places = { name: 'transcript', perKey: parts, perHost: parts, leaseMs } as const;
  return {
    payload: TranscriptPayload,
    async prepare({ jobId, name }) {
      const { audioOf, failed, gone } = await load();
      const audio = await audioOf(jobId, name, options);
      if (audio !== undefined && audio.notMade === undefined) return { ready: audio };
      observer?.transcriptEnded('failed');
      return audio?.notMade === undefined ? gone() : failed(audio.notMade);
    },
    async try(audio, payload, attempt, signal) {
      const { takeTurn } = await load();
      const turn = await takeTurn(audio, payload, attempt, signal, options);
      if (turn.outcome === 'done') observer?.transcriptEnded(turn.result.status);
      return turn;
    },
    schedule: scheduled(scheduleSeconds),
    turn: async ({ tenant }) => ({ key: tenant, host: HOST, places }),
    ended: (payload, outcome = { status: 'failed', error: LOST }) => addNext(payload, outcome, options),
    jobOf: ({ jobId }) => jobId,
    tidy: async (payload) => (await load()).removeTranscriptAudio(payload, options),
    logSeconds,
  };
}

/** Its webhook, the put of its text, and the webhook of a put that there is nothing for. */
async function addNext(
  { jobId, name }: TranscriptPayload,
  outcome: TranscriptOutcome,
  { readJob, followUps }: TranscriptOptions,
): Promise<void> {
  const record = await readJob(jobId);
  const audio = record?.result?.transcripts?.find((one) => one.name === name);
  if (record === undefined || audio === undefined) return;
  const { state, file } = progressOf(audio, outcome);
  if (file !== undefined) await followUps.addPut(record, name, file);
  await followUps.addWebhook(record, {
    deliveryId: webhookId(transcriptId(jobId, name)),
    event: 'transcript.updated',
    transcript: state,
    ...(file && { transcriptFile: file }),
  });
  if (file === undefined) await followUps.addDestinationWebhook(record, name, NOT_MADE);
}
