/**
 * A client that looks at every accepted job again and again, through outages, and remembers what it was told: every end
 * that it ever saw, and whether the progress ever went back.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import type { AcceptedJob, Stand } from './stand.ts';

const ROUND_MS = 100;
/** Looks of one round, so that a thousand jobs do not keep the API from its work. */
const LOOKS_PER_ROUND = 12;

export interface Watched {
  /** Each different end that was ever told, such as `completed <sha256>` or `failed INTERNAL_ERROR`. */
  readonly ends: Set<string>;
  /** What no client may ever see, as sentences. */
  readonly faults: Set<string>;
  /** The job as it was told last. */
  last: Json | undefined;
  /** When the first end was seen, ms since the epoch. */
  endedSeenAtMs: number | undefined;
}

export class Observer {
  readonly #stand: Stand;
  readonly #watched = new Map<string, Watched>();
  #running: Promise<void> | undefined;
  #stopped = false;
  #turn = 0;

  constructor(stand: Stand) {
    this.#stand = stand;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  stop(): void {
    this.#stopped = true;
  }

  of(jobId: string): Watched {
    const known = this.#watched.get(jobId);
    if (known !== undefined) return known;
    const fresh: Watched = { ends: new Set(), faults: new Set(), last: undefined, endedSeenAtMs: undefined };
    this.#watched.set(jobId, fresh);
    return fresh;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await Promise.all(this.#nextJobs().map((job) => this.look(job).catch(() => undefined)));
      await delay(ROUND_MS);
    }
  }

  /** Mostly jobs that have not come to rest, and one of those that have: an end must stay what it was. */
  #nextJobs(): AcceptedJob[] {
    const { accepted } = this.#stand;
    const moving = accepted.filter(({ jobId }) => !isAtRest(this.of(jobId).last));
    const resting = accepted.filter(({ jobId }) => isAtRest(this.of(jobId).last));
    this.#turn += 1;
    const first = (this.#turn * LOOKS_PER_ROUND) % Math.max(1, moving.length);
    const turn =
      moving.length <= LOOKS_PER_ROUND
        ? moving
        : [...moving.slice(first), ...moving].slice(0, LOOKS_PER_ROUND);
    const again = resting[this.#turn % Math.max(1, resting.length)];
    return again === undefined ? turn : [...turn, again];
  }

  /** Asks for a job once, and notes what was told. Rejects when there was no answer. */
  async look({ jobId, submission }: AcceptedJob): Promise<Json> {
    const client = this.#stand.clientOf(submission.key ?? this.#stand.home.key);
    const { status, body } = await client.call('GET', `/v1/jobs/${jobId}`);
    const watched = this.of(jobId);
    if (status === 404) watched.faults.add('an accepted job was not known any more');
    if (status !== 200) return undefined;
    const job: Json = body.data;
    this.#compare(watched, job);
    watched.last = job;
    return job;
  }

  #compare(watched: Watched, job: Json): void {
    const { last, ends, faults } = watched;
    // Answers to two looks at once may overtake each other, but a job is looked at once a round only.
    if (last !== undefined && job.progress < last.progress) {
      faults.add(`the progress went back from ${last.progress} to ${job.progress}`);
    }
    const end = endOf(job);
    if (end !== undefined) {
      ends.add(end);
      watched.endedSeenAtMs ??= Date.now();
    } else if (ends.size > 0) {
      faults.add(`a job that had ended was ${job.status} again`);
    }
  }

  /**
   * Waits until these jobs have ended and everything that they announce is settled.
   * @throws Error that names those that have not
   */
  async atRest(jobIds: readonly string[], timeoutMs = 60_000): Promise<void> {
    const open = (): string[] => jobIds.filter((jobId) => !isAtRest(this.of(jobId).last));
    await until('the jobs come to rest', () => open().length === 0, timeoutMs).catch(() => {
      throw new Error(
        `not at rest after ${timeoutMs} ms: ${open()
          .map((jobId) => `${jobId} ${describe(this.of(jobId).last)}`)
          .join(', ')}`,
      );
    });
  }

  /** Waits until the job has ended, and answers how it was told. */
  async ended(jobId: string, timeoutMs = 60_000): Promise<Json> {
    await until(`${jobId} has ended`, () => this.of(jobId).ends.size > 0, timeoutMs);
    return this.of(jobId).last;
  }
}

function endOf(job: Json): string | undefined {
  if (job.status === 'completed') return `completed ${job.outputFile?.sha256}`;
  return job.status === 'failed' ? `failed ${job.error?.code}` : undefined;
}

/** Ended, its webhook delivered or exhausted, its voice message in a final state. */
export function isAtRest(job: Json): boolean {
  return (
    job !== undefined &&
    endOf(job) !== undefined &&
    job.webhook?.status !== 'pending' &&
    !['pending', 'sending'].includes(job.voiceMessage?.status)
  );
}

function describe(job: Json): string {
  if (job === undefined) return 'was never told of';
  const { status, progress, webhook, voiceMessage } = job;
  return `${status} at ${progress} %, webhook ${webhook?.status ?? 'none'}, voice message ${voiceMessage?.status ?? 'none'}`;
}
