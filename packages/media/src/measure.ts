/** What can be measured of a source without making a file of it. */
import { MediaFailure } from './failure.ts';
import { inputOf } from './input-run.ts';
import type { Probe } from './probe.ts';
import type { MediaTools } from './run.ts';
import { endOf, truncationOf } from './settle.ts';
import { defaultTrack } from './track-choice.ts';

interface Measured {
  /** Where the default track ends on the source's clock, counted; null if it cannot be read. */
  readonly endSeconds: number | null;
  /** The missing part of a truncated file; null if it is whole. */
  readonly truncated: string | null;
}

const MINUTE = 60 * 1000;

/** @throws the signal's reason; errors that are worth a retry */
export async function measureSource(source: {
  readonly tools: MediaTools;
  /** A regular local file. */
  readonly input: string;
  readonly probe: Probe;
  readonly signal: AbortSignal;
}): Promise<Measured> {
  const track = defaultTrack(source.probe);
  // Reading packets is far faster than real time; a slow disk may be no faster.
  const wallLimitMs = 10 * MINUTE + (track.declaredSeconds ?? 0) * 1000;
  const job = { ...source, wallLimitMs };
  const endSeconds = await endOf(job, inputOf(job), `0:${track.streamIndex}`).catch((error: unknown) => {
    if (error instanceof MediaFailure) return null;
    throw error;
  });
  return { endSeconds, truncated: await truncationOf(job) };
}
