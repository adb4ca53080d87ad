/**
 * One job as it moves. The console's stream tells of it; what the stream does not tell (the ticks of a voice message, transcripts, destinations), and
 * everything while it is away, is asked for, as long as it may still move.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Job, VoiceMessageState } from 'soundpost-contract/job';
import { listen } from '../../live.ts';
import { api, isAborted, isPassing, sentence } from '../../session.ts';
import { isUnfinished } from '../../words.ts';

const LOOK_MS = 1500;
const AWAY_MS = 2000;
/** After so long without a change nobody waits for a tick any more, and for a transcript with less haste. */
const PATIENCE_MS = 10 * 60 * 1000;
const PATIENT_LOOK_MS = 30_000;

interface WatchedJob {
  /** Undefined until it is known. */
  readonly job?: Job | undefined;
  /** Whether the service does not answer now. */
  readonly isAway: boolean;
  /** Why it cannot be shown at all. */
  readonly fault: string;
}

export function useJob(jobId: string): WatchedJob {
  const [watched, setWatched] = useState<WatchedJob>({ isAway: false, fault: '' });
  useEffect(() => watchJob(jobId, (change) => setWatched((before) => ({ ...before, ...change }))), [jobId]);
  return watched;
}

/** @returns ends it */
function watchJob(jobId: string, tell: (change: Partial<WatchedJob>) => void): () => void {
  const ending = new AbortController();
  let asking: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let now: Job | undefined;
  let isLive = false;
  let movedAt = Date.now();

  function take(job: Job): void {
    if (JSON.stringify(job) !== JSON.stringify(now)) {
      movedAt = Date.now();
      now = job;
      tell({ job, fault: '' });
    }
    lookLater();
  }

  function lookLater(): void {
    clearTimeout(timer);
    const pause = now === undefined ? LOOK_MS : pauseBeforeLook(now, isLive, Date.now() - movedAt);
    if (pause !== undefined && !ending.signal.aborted) timer = setTimeout(look, pause);
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    asking?.abort();
    asking = new AbortController();
    const before = now;
    try {
      const job = await api().job(jobId, { signal: AbortSignal.any([ending.signal, asking.signal]) });
      tell({ isAway: false });
      // What the stream has told meanwhile is newer.
      if (now === before) take(job);
      else lookLater();
    } catch (error) {
      if (isAborted(error)) return;
      if (isPassing(error)) {
        tell({ isAway: true });
        timer = setTimeout(look, AWAY_MS);
      } else {
        tell({ isAway: false, fault: sentence(error) });
      }
    }
  }

  const unlisten = listen({
    onJob(job) {
      if (job.jobId === jobId) take(job);
    },
    onFresh() {
      isLive = true;
      void look();
    },
    onLost() {
      isLive = false;
      tell({ isAway: true });
      void look();
    },
  });
  if (asking === undefined) void look();
  return () => {
    ending.abort();
    clearTimeout(timer);
    unlisten();
  };
}

/** Undefined: it does not move any more, or the stream tells. */
function pauseBeforeLook(job: Job, isLive: boolean, stillMs: number): number | undefined {
  if (isUnfinished(job)) return isLive ? undefined : LOOK_MS;
  const isPatient = stillMs >= PATIENCE_MS;
  const { voiceMessage, transcripts = [], destination, outputFiles } = job;
  if (!isPatient && voiceMessage !== undefined && mayTick(voiceMessage)) return LOOK_MS;
  const states = [...transcripts, destination, ...outputFiles.map((file) => file.destination)];
  if (!states.some((state) => state?.status === 'pending')) return undefined;
  return isPatient ? PATIENT_LOOK_MS : LOOK_MS;
}

const mayTick = ({ status, messageStatus }: VoiceMessageState): boolean =>
  status !== 'failed' && status !== 'unknown' && messageStatus !== 'ERROR' && messageStatus !== 'PLAYED';
