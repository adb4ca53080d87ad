/** Transcripts: the queue's turns, and what is done in each, which is loaded with the first. */

import type { TranscriptServices } from '../followups/kinds/transcript.ts';
import { consumeTranscripts, type TranscriptConsumer } from '../jobs/transcript-consumer.ts';

interface TurnOptions
  extends TranscriptServices,
    Omit<Parameters<typeof consumeTranscripts>[0], 'turnMs' | 'takeTurn' | 'onEnd' | 'logger'> {
  /** How long the transcriber may take for a part. */
  readonly partMs: number;
}

/** Longer than a part may take: the storage has to answer before and after it. */
const TURN_MARGIN_MS = 5 * 60 * 1000;

const load = () => import('../followups/kinds/transcript.ts');

export function consumeTurns(options: TurnOptions): TranscriptConsumer {
  return consumeTranscripts({
    ...options,
    turnMs: options.partMs + TURN_MARGIN_MS,
    takeTurn: async (payload, attempt, stopping) =>
      (await load()).takeTranscriptTurn(payload, attempt, stopping, options),
    onEnd: async (payload) => (await load()).removeTranscriptAudio(payload, options),
  });
}
