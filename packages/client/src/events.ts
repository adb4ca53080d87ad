/** All jobs of the key, as they change. */
import type { Job } from 'soundpost-contract/job';
import type { Connection } from './connection.ts';
import { delay } from './delay.ts';
import { SoundpostError } from './error.ts';
import { readEvents, type ServerEvent } from './event-stream.ts';
import { Watchdog } from './wait.ts';

export interface EventsOptions {
  /** Ends the events; the loop then throws the abort reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called at the start, and when changes may have been missed: list the jobs again. */
  readonly onReset?: () => void;
  /** Called when the connection failed or broke; it is retried. */
  readonly onLost?: () => void;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** Reconnects until aborted. Throws SoundpostError if the service refuses the request. */
export async function* watchJobs(
  connection: Connection,
  { signal, onReset, onLost }: EventsOptions,
): AsyncGenerator<Job, never> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    for await (const { event, data } of oneStream(connection, signal)) {
      pauseMs = FIRST_PAUSE_MS;
      if (event === 'reset') onReset?.();
      if (event === 'job') yield JSON.parse(data) as Job;
    }
    onLost?.();
    await delay(pauseMs, signal);
  }
}

/** Ends when the stream fails or breaks. */
async function* oneStream(
  connection: Connection,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  const silence = new AbortController();
  const watchdog = new Watchdog(() => silence.abort());
  try {
    const response = await connection.response('/v1/events', {
      headers: { Accept: 'text/event-stream' },
      retries: 0,
      signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
    });
    if (response.body === null) return;
    for await (const event of readEvents(response.body, () => watchdog.feed())) {
      // Time that the reader spends on an event does not count as silence.
      watchdog.stop();
      yield event;
      watchdog.feed();
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof SoundpostError && isRefusal(error)) throw error;
  } finally {
    watchdog.stop();
    silence.abort();
  }
}

/** Whether a retry would get the same answer. 429 and server errors are temporary. */
function isRefusal({ httpStatus }: SoundpostError): boolean {
  return httpStatus >= 400 && httpStatus < 500 && httpStatus !== 429;
}
