/**
 * Doing the same with many jobs, part by part and as fast as the key's limits let it. It goes on
 * while somebody looks at another view. How far it has come stays in this browser: after a reload
 * it goes on from there, and each part has an Idempotency-Key, so that none is done twice.
 */
import { SoundpostError } from 'soundpost-client/error';
import { cancel } from '../../job-actions.ts';
import { api, isAborted, sentence } from '../../session.ts';
import { createStore } from '../new/store.ts';

export type BulkVerb = 'retry' | 'cancel' | 'erase';

interface BulkWork {
  /** Makes the keys of its parts. */
  readonly run: string;
  readonly verb: BulkVerb;
  readonly jobs: readonly string[];
  /** How many of them have had their turn. */
  readonly done: number;
  readonly failed: number;
  /** Of the first that failed. */
  readonly reason?: string | undefined;
}

interface BulkState {
  readonly work?: BulkWork | undefined;
  readonly isRunning: boolean;
  /** Whether the service or the key's limits hold it up. */
  readonly isWaiting: boolean;
  readonly fault: string;
}

const STORE = 'soundpost.console.bulk';
const PAUSE_SECONDS = 5;
/** The client waits for some limits itself; from then on it is said. */
const SLOW_MS = 3000;

interface Kind {
  /** A part of retries is taken whole or not at all, so it stays well below a key's rate. */
  readonly atATime: number;
  /** @returns why jobs were left out */
  readonly send: (jobs: readonly string[], idempotencyKey: string, signal: AbortSignal) => Promise<string[]>;
}

const bulk =
  (action: 'retry' | 'delete'): Kind['send'] =>
  async (jobs, idempotencyKey, signal) => {
    const { results } = await api().bulk(action, jobs, { idempotencyKey, signal });
    return results.flatMap(({ error }) => (error === undefined ? [] : sentence(error)));
  };

const kinds: Readonly<Record<BulkVerb, Kind>> = {
  retry: { atATime: 20, send: bulk('retry') },
  erase: { atATime: 100, send: bulk('delete') },
  // One that ended a moment ago would be erased: each is looked at first.
  cancel: { atATime: 1, send: ([jobId = '']) => cancel(jobId).then(() => []) },
};

export const bulkState = createStore<BulkState>({
  work: stored(),
  isRunning: false,
  isWaiting: false,
  fault: '',
});
let stopping: AbortController | undefined;

const change = (part: Partial<BulkState>): void => bulkState.set((state) => ({ ...state, ...part }));

export function beginBulk(verb: BulkVerb, jobs: readonly string[]): Promise<void> {
  const run = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join('');
  keep({ run, verb, jobs, done: 0, failed: 0 });
  return goOn();
}

/** Ends when all have had their turn, or it was stopped, or the service did not answer. */
export async function goOn(): Promise<void> {
  if (bulkState.get().isRunning) return;
  stopping = new AbortController();
  const { signal } = stopping;
  change({ isRunning: true, fault: '' });
  try {
    for (let work = bulkState.get().work; work !== undefined && work.done < work.jobs.length; ) {
      work = await nextPart(work, signal);
      // Asked for once more with its key, a part is only answered again.
      signal.throwIfAborted();
      keep(work);
    }
  } catch (error) {
    if (!isAborted(error)) change({ fault: sentence(error) });
  } finally {
    change({ isRunning: false, isWaiting: false });
  }
}

/** {@link goOn} does the rest. */
export const stopBulk = (): void => stopping?.abort();

/** Also when somebody signs out: nothing of it stays in this browser. */
export function forgetBulk(): void {
  stopBulk();
  localStorage.removeItem(STORE);
  change({ work: undefined, fault: '' });
}

async function nextPart(work: BulkWork, signal: AbortSignal): Promise<BulkWork> {
  const { verb, run, jobs, done, failed, reason } = work;
  const { atATime, send } = kinds[verb];
  const part = jobs.slice(done, done + atATime);
  const reasons = await withinLimits(() => send(part, `${run}-${done}`, signal), signal);
  return {
    ...work,
    done: done + part.length,
    failed: failed + reasons.length,
    reason: reason ?? reasons[0],
  };
}

async function withinLimits<Answer>(ask: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  const slow = setTimeout(() => change({ isWaiting: true }), SLOW_MS);
  try {
    for (;;) {
      const answer = await ask().catch((error: unknown) => {
        if (error instanceof SoundpostError && [409, 429].includes(error.httpStatus)) return error;
        throw error;
      });
      if (!(answer instanceof SoundpostError)) return answer;
      change({ isWaiting: true });
      await pause((answer.retryAfterSeconds ?? PAUSE_SECONDS) * 1000, signal);
    }
  } finally {
    clearTimeout(slow);
    change({ isWaiting: false });
  }
}

/** @throws the signal's reason, at once when it is aborted */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}

function keep(work: BulkWork): void {
  localStorage.setItem(STORE, JSON.stringify(work));
  change({ work });
}

function stored(): BulkWork | undefined {
  return JSON.parse(localStorage.getItem(STORE) ?? 'null') ?? undefined;
}
