/**
 * A client that does not give up: it sends the same submission under the same Idempotency-Key until it is accepted, over reset
 * connections, refusals to listen and answers that say "later", as docs and decisions (A6) ask of clients.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import type { Stand } from './stand.ts';
import type { Submission } from './submission.ts';

/** So that the scenarios need not wait as long as `Retry-After` says; never less than the service can bear. */
const LONGEST_WAIT_MS = 500;
const PATIENCE_MS = 120_000;
/** Answers that say: once more. */
const LATER = new Set([409, 429, 503]);

export interface Accepted {
  readonly jobId: string;
  readonly idempotencyKey: string;
  /** How often it was sent. */
  readonly tries: number;
  /** What the tries that were not accepted came to, such as `503 SERVICE_UNAVAILABLE` or `ECONNRESET`. */
  readonly setbacks: readonly string[];
  /** The slowest answer of all tries, ms; tries that were never answered do not count. */
  readonly slowestMs: number;
}

/** Throws when it is refused for good, or not accepted within two minutes. */
export async function submitSurely(
  stand: Stand,
  submission: Submission & { readonly idempotencyKey: string },
): Promise<Accepted> {
  const { idempotencyKey } = submission;
  const untilMs = Date.now() + PATIENCE_MS;
  const setbacks: string[] = [];
  let slowestMs = 0;
  while (Date.now() < untilMs) {
    const startedMs = performance.now();
    const answer = await stand.trySubmit(submission).catch((error: unknown) => codeOf(error));
    if (typeof answer === 'string') {
      setbacks.push(answer);
    } else {
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      const { status, body }: { status: number; body: Json } = answer;
      if (status === 202) {
        return { jobId: body.data.jobId, idempotencyKey, tries: setbacks.length + 1, setbacks, slowestMs };
      }
      setbacks.push(`${status} ${body.error?.code}`);
      if (!LATER.has(status)) throw new Error(`${idempotencyKey} was refused: ${setbacks.at(-1)}`);
    }
    await delay(Math.min(LONGEST_WAIT_MS, 50 * 2 ** setbacks.length));
  }
  throw new Error(`${idempotencyKey} was not accepted in ${PATIENCE_MS} ms: ${setbacks.join(', ')}`);
}

/** How often each setback was met. */
export function countSetbacks(accepted: readonly Accepted[]): Record<string, number> {
  const all = Map.groupBy(
    accepted.flatMap(({ setbacks }) => setbacks),
    (setback) => setback,
  );
  return Object.fromEntries([...all].map(([setback, times]) => [setback, times.length]));
}

/** Node's fetch hides what happened to the connection in the cause. */
function codeOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: string; name?: string }; name?: string };
  return cause?.code ?? cause?.name ?? name ?? 'unknown';
}
