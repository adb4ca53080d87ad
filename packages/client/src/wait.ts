/** Waits for the end of a job: by its events if possible, otherwise by polling. */
import type { Job, OutputFile } from 'soundpost-contract/job';
import type { Connection } from './connection.ts';
import { delay } from './delay.ts';
import { SoundpostError } from './error.ts';
import { readEvents } from './event-stream.ts';

/** @typeParam File `null` for a probe, which has no file */
export type CompletedJob<File extends OutputFile | null = OutputFile> = Job & {
  readonly status: 'completed';
  readonly outputFile: File;
};

export interface WaitOptions {
  /** Ends the wait, not the job: see `cancel`. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the first state of the job, and at each change. */
  readonly onProgress?: (job: Job) => void;
}

/** The service recommends 2 to 5 seconds. */
const FIRST_POLL_MS = 2000;
const LONGEST_POLL_MS = 5000;
/** The service sends something every 15 s; a longer silence means that the stream is stuck. */
const SILENCE_MS = 20_000;
/** Polling would get these answers too. */
const REFUSALS = new Set([400, 401, 403]);

/** Throws SoundpostError with the job's own code if it fails. */
export async function waitForEnd<File extends OutputFile | null>(
  connection: Connection,
  jobId: string,
  { signal, onProgress }: WaitOptions,
): Promise<CompletedJob<File>> {
  let shown = '';
  const show = (job: Job): CompletedJob<File> | undefined => {
    const state = JSON.stringify([job.status, job.progress, job.currentStep]);
    if (state !== shown) {
      shown = state;
      onProgress?.(job);
    }
    return completedOf<File>(job);
  };
  for await (const job of jobEvents(connection, jobId, signal)) {
    const ended = show(job);
    if (ended !== undefined) {
      return ended;
    }
  }
  return poll(connection, jobId, signal, show);
}

/** Ends early if the stream fails or breaks; the caller then polls. */
async function* jobEvents(
  connection: Connection,
  jobId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Job> {
  const silence = new AbortController();
  const watchdog = new Watchdog(() => silence.abort());
  try {
    const response = await connection.response(`/v1/jobs/${jobId}/events`, {
      headers: { Accept: 'text/event-stream' },
      // Polling works instead, for example if the key has too many open streams.
      retries: 0,
      signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
    });
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    if (isStream && response.body !== null) {
      for await (const { event, data } of readEvents(response.body, () => watchdog.feed())) {
        if (event === 'job') {
          yield JSON.parse(data) as Job;
        }
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof SoundpostError && REFUSALS.has(error.httpStatus)) {
      throw error;
    }
  } finally {
    watchdog.stop();
    silence.abort();
  }
}

async function poll<Completed>(
  connection: Connection,
  jobId: string,
  signal: AbortSignal | undefined,
  show: (job: Job) => Completed | undefined,
): Promise<Completed> {
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_POLL_MS)) {
    const ended = show(await connection.data<Job>(`/v1/jobs/${jobId}`, { signal }));
    if (ended !== undefined) {
      return ended;
    }
    await delay(pauseMs, signal);
  }
}

function completedOf<File extends OutputFile | null>(job: Job): CompletedJob<File> | undefined {
  if (job.status === 'failed') {
    throw new SoundpostError(job.error ?? { code: 'INTERNAL_ERROR', message: 'the job failed' }, {
      httpStatus: 200,
    });
  }
  return job.status === 'completed' ? (job as CompletedJob<File>) : undefined;
}

/** Calls back unless it is fed in time. */
export class Watchdog {
  readonly #bite: () => void;
  #timer: ReturnType<typeof setTimeout>;

  constructor(bite: () => void) {
    this.#bite = bite;
    this.#timer = setTimeout(bite, SILENCE_MS);
  }

  feed(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#bite, SILENCE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
