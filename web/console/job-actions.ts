/** What can be done with a job from wherever it is shown. */
import { SoundpostError } from 'soundpost-client/error';
import type { Job } from 'soundpost-contract/job';
import { announce } from './announcements.ts';
import { tellJob } from './live.ts';
import { api, sentence } from './session.ts';

/** Ends a job that has not ended. */
export async function cancel(jobId: string): Promise<void> {
  // What has ended meanwhile would not be cancelled but erased.
  const now = await api().job(jobId);
  const isOver = now.status === 'completed' || now.status === 'failed';
  tellJob(isOver ? now : await api().cancel(jobId));
  if (!isOver) announce('Cancelled');
}

/** Removes the files of a finished job. */
export async function erase(jobId: string): Promise<void> {
  tellJob(await api().cancel(jobId));
}

/** Makes a new job of a failed one. @returns its id */
export async function retry(jobId: string): Promise<string> {
  return (await api().retry(jobId)).jobId;
}

export type BulkAction = 'retry' | 'delete';

/** Jobs in one request. A request of retries is taken whole or not at all, so it stays well below a key's rate. */
const AT_A_TIME: Readonly<Record<BulkAction, number>> = { retry: 20, delete: 100 };
const PAUSE_SECONDS = 5;

interface BulkOptions {
  readonly signal: AbortSignal;
  /** @param done how many were asked for so far */
  readonly onDone: (done: number) => void;
}

/**
 * Does the same with many jobs, some at a time, as fast as the key's limits let it.
 * @returns the reasons of those that failed
 */
export async function inBulk(
  action: BulkAction,
  jobs: readonly Job[],
  { signal, onDone }: BulkOptions,
): Promise<readonly string[]> {
  const failed: string[] = [];
  for (let first = 0; first < jobs.length; first += AT_A_TIME[action]) {
    const part = jobs.slice(first, first + AT_A_TIME[action]).map(({ jobId }) => jobId);
    const { results } = await withinLimits(() => api().bulk(action, part, { signal }), signal);
    failed.push(...results.flatMap(({ error }) => (error === undefined ? [] : sentence(error))));
    onDone(first + part.length);
  }
  return failed;
}

async function withinLimits<Answer>(ask: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof SoundpostError) || error.code !== 'RATE_LIMITED') throw error;
      await pause((error.retryAfterSeconds ?? PAUSE_SECONDS) * 1000, signal);
    }
  }
}

/** @throws the signal's reason, at once when it is aborted */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
