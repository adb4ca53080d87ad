/**
 * The key's jobs as they move: one stream of events for the whole console, open while somebody listens. Whoever shows jobs listens here, and asks once
 * more when the stream stands again after a break, since it tells nothing of what was missed.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { api } from './session.ts';

export interface LiveListener {
  /** A job that is new or has changed. */
  readonly onJob?: (job: Job) => void;
  /** The stream stands, at first or again. */
  readonly onFresh?: () => void;
  readonly onLost?: () => void;
}

const listeners = new Set<LiveListener>();
let stopping: AbortController | undefined;
let isLive = false;

/** Opens the stream with the first who listens, and closes it with the last. @returns ends it */
export function listen(listener: LiveListener): () => void {
  listeners.add(listener);
  if (stopping === undefined) {
    stopping = new AbortController();
    void follow(stopping.signal);
  } else if (isLive) {
    listener.onFresh?.();
  }
  return () => {
    listeners.delete(listener);
    // Another view may listen in the same moment.
    setTimeout(closeUnused);
  };
}

function closeUnused(): void {
  if (listeners.size > 0) return;
  stopping?.abort();
  stopping = undefined;
  isLive = false;
}

/**
 * Asks the service about jobs. What the stream tells while the answer is under way is newer than the answer.
 * @returns the answer, and the jobs that have moved meanwhile, by id
 */
export async function withMoves<Answer>(
  ask: () => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly moved: ReadonlyMap<string, Job> }> {
  const moved = new Map<string, Job>();
  const listener: LiveListener = { onJob: (job) => moved.set(job.jobId, job) };
  listeners.add(listener);
  try {
    return { answer: await ask(), moved };
  } finally {
    listeners.delete(listener);
    closeUnused();
  }
}

/** Tells of a job that this page has changed itself, without waiting for the stream. */
export function tellJob(job: Job): void {
  for (const { onJob } of listeners) onJob?.(job);
}

/** Whether the stream stands now. */
export function useLive(): boolean {
  const [live, setLive] = useState(isLive);
  useEffect(() => listen({ onFresh: () => setLive(true), onLost: () => setLive(false) }), []);
  return live;
}

async function follow(signal: AbortSignal): Promise<void> {
  try {
    const events = api().events({ signal, onReset: () => tellLive(true), onLost: () => tellLive(false) });
    for await (const job of events) tellJob(job);
  } catch {
    // Ended on purpose, or by a key without the scope `read`: what that may do works without.
  }
}

function tellLive(live: boolean): void {
  isLive = live;
  for (const { onFresh, onLost } of [...listeners]) (live ? onFresh : onLost)?.();
}
