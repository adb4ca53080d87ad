/** Transcripts, one part for each attempt (decisions A8). Their code is loaded with the first. */

import { transcriptId, webhookId } from '../../jobs/names.ts';
import { type TranscriptOutcome, TranscriptPayload } from '../../jobs/payloads.ts';
import type { JobFollowUps } from '../job-followups.ts';
import { type FollowUpKind, scheduled } from '../kind.ts';
import type { Turn } from '../places.ts';
import { NOT_MADE } from '../state/destinations.ts';
import { heardTogether, LOST, progressOf } from '../state/transcripts.ts';
import type { Recorded, TranscriptServices } from '../transcripts/turn.ts';

interface TranscriptOptions extends TranscriptServices {
  readonly followUps: Pick<JobFollowUps, 'addWebhook' | 'addPut' | 'addDestinationWebhook'>;
  /** Attempts, in seconds after the first. */
  readonly scheduleSeconds: readonly number[];
  /** Parts in progress at once, in all processes. */
  readonly parts: number;
  /** The transcriber's timeout for a part. */
  readonly partMs: number;
  readonly logSeconds: number;
}

/** Time beyond a part's limit: the storage must answer before and after it. */
const TURN_MARGIN_MS = 5 * 60 * 1000;
/** There is a single transcriber. */
const HOST = 'transcriber';

const load = () => import('../transcripts/turn.ts');

export function transcriptKind(
  options: TranscriptOptions,
): FollowUpKind<TranscriptPayload, Recorded, TranscriptOutcome> {
  const { parts, partMs, scheduleSeconds, observer, logSeconds } = options;
  const note = (audios: readonly unknown[], status: 'completed' | 'failed'): void => {
    for (const _ of audios) observer?.transcriptEnded(status);
  };
  return {
    payload: TranscriptPayload,
    async prepare({ jobId, name }) {
      const { audiosOf, failed, gone } = await load();
      const [audio, ...others] = await audiosOf(jobId, name, options);
      if (audio !== undefined && audio.notMade === undefined) return { ready: [audio, ...others] };
      note([audio, ...others], 'failed');
      return audio?.notMade === undefined ? gone() : failed(audio.notMade);
    },
    async try(audios, payload, attempt, signal) {
      const { takeTurn } = await load();
      const turn = await takeTurn(audios, payload, attempt, signal, options);
      if (turn.outcome === 'done') note(audios, turn.result.status);
      return turn;
    },
    schedule: scheduled(scheduleSeconds),
    turn: async ({ tenant }) => partTurn(tenant, { parts, partMs }),
    ended: (payload, outcome = { status: 'failed', error: LOST }) => addNext(payload, outcome, options),
    jobOf: ({ jobId }) => jobId,
    tidy: async (payload) => (await load()).removeTranscriptAudio(payload, options),
    logSeconds,
  };
}

/** The place of a part at the transcriber. */
export function partTurn(
  tenant: string,
  { parts, partMs }: Pick<TranscriptOptions, 'parts' | 'partMs'>,
): Turn {
  const leaseMs = partMs + TURN_MARGIN_MS;
  const places = { name: 'transcript', perKey: parts, perHost: parts, leaseMs } as const;
  return { key: tenant, host: HOST, places };
}

/** Adds each one's webhook, its text's delivery, and the webhook of a delivery without a file. */
async function addNext(
  { jobId, name }: TranscriptPayload,
  outcome: TranscriptOutcome,
  { readJob, followUps }: TranscriptOptions,
): Promise<void> {
  const record = await readJob(jobId);
  if (record === undefined) return;
  for (const audio of heardTogether(record, name)) {
    const { state, file } = progressOf(audio, outcome);
    if (file !== undefined) await followUps.addPut(record, audio.name, file);
    await followUps.addWebhook(record, {
      deliveryId: webhookId(transcriptId(jobId, audio.name)),
      event: 'transcript.updated',
      transcript: state,
      ...(file && { transcriptFile: file }),
    });
    if (file === undefined) await followUps.addDestinationWebhook(record, audio.name, NOT_MADE);
  }
}
