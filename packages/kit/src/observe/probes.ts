/**
 * Periodic checks of a process's dependencies: one row each. Health and metrics read the rows, and
 * workers pause by them.
 */
import { EventEmitter } from 'node:events';
import type { Logger } from 'soundpost-base/logger';

interface ProbeRow {
  /** States in health, from best to worst: the last one is a failure. */
  readonly states: readonly string[];
  readonly everyMs: number;
  /** Default: `everyMs`. */
  readonly everyMsWhileFailing?: number;
  /** Failures in a row that count as one; default 1. */
  readonly failureThreshold?: number;
  /** Queue whose workers start no jobs during a failure; default: none. */
  readonly pauses?: 'extract' | 'every queue';
  /** Only a restart helps, so this process ends. */
  readonly endsProcess?: true;
  /** Log messages for the start and the end of a failure. */
  readonly failed: string;
  readonly recovered?: string;
}

/** `cut-off`: only this process has lost Redis, so a restart helps. */
const link = {
  states: ['up', 'cut-off'],
  everyMs: 5000,
  // Allows time to reconnect, also during a failover.
  failureThreshold: 3,
  failed: 'Redis answers a fresh connection and not ours: /health/live is 503 until it does',
} as const;

export const probeTable = {
  link,
  /** The gateway has its own connection. */
  gatewayLink: link,
  /** Redis takes writes. */
  redis: {
    states: ['up', 'refuses-writes'],
    everyMs: 1000,
    everyMsWhileFailing: 250,
    pauses: 'every queue',
    failed: 'Redis refuses writes: no jobs are taken until it takes them',
    recovered: 'Redis takes writes again',
  },
  /** This process's clock is close to Redis', because BullMQ times jobs by it. */
  clock: {
    states: ['right', 'wrong'],
    everyMs: 1000,
    pauses: 'every queue',
    failed:
      'the clock of this machine differs from the Redis clock by more than 5 s; no jobs start and nothing is removed until it is right; set it by NTP',
    recovered: 'the clock is right again',
  },
  /** The storage answers a ping. `slow`: after more than a second. */
  storage: {
    states: ['up', 'slow', 'down'],
    everyMs: 5000,
    everyMsWhileFailing: 500,
    pauses: 'extract',
    failed: 'the storage is unavailable: jobs wait and requests that need it are rejected',
    recovered: 'the storage answers again',
  },
  /** Redis and the results belong together, by their marks (src/process/marks.ts). */
  marks: {
    states: ['same', 'apart'],
    everyMs: 60_000,
    // Two in a row: another process may be marking both.
    failureThreshold: 2,
    pauses: 'extract',
    failed:
      'Redis and the results no longer belong together: no jobs are taken, and the next start will be refused; see docs/how-to/disasters.md',
    recovered: 'Redis and the results belong together again: jobs are taken',
  },
  /** The volumes have more than the reserve. A job's three tries take longer than the interval. */
  disk: {
    states: ['ok', 'low'],
    everyMs: 1000,
    pauses: 'extract',
    failed: 'the disk is nearly full (DISK_RESERVE_BYTES): no more jobs are taken until there is room',
    recovered: 'there is room on the disk again: jobs are taken',
  },
  /** `stalled`: a worker with room starts no waiting jobs. A healthy one looks every 5 s. */
  consumer: {
    states: ['taking', 'stalled'],
    everyMs: 5000,
    failureThreshold: 12,
    endsProcess: true,
    failed:
      'the worker starts no jobs although jobs wait (WATCHDOG_SECONDS); it exits so that it is restarted',
  },
  /** This probe is the event loop's heartbeat: loop-watchdog.ts kills a process without it. */
  loop: {
    states: ['turning', 'stood'],
    everyMs: 6000,
    failed: 'the event loop stood still, and requests went unanswered',
  },
} as const satisfies Record<string, ProbeRow>;

type ProbeName = keyof typeof probeTable;
export type ProbeState<Name extends ProbeName> = (typeof probeTable)[Name]['states'][number];

/** How to check a row. */
export interface Probe<Name extends ProbeName> {
  /** Throws if the state is unknown: the last one stays. @param closing aborted by `close` */
  ask(closing: AbortSignal): ProbeState<Name> | Promise<ProbeState<Name>>;
  /** Default: the table's interval. */
  readonly everyMs?: number | undefined;
  /** Fields that the log adds to the table's message. */
  details?(): object;
  /** Gauges for a scrape. */
  figures?(): Partial<Readonly<Record<Figure, number>>>;
  close?(): void | Promise<void>;
}

/** Gauges without labels. */
type Figure =
  | 'soundpost_clock_ahead_seconds'
  | 'soundpost_storage_up'
  | 'soundpost_storage_answer_seconds'
  | 'soundpost_worker_disk_low';

interface Asked extends Probe<ProbeName> {
  state: ProbeState<ProbeName>;
  failures: number;
  timer?: NodeJS.Timeout;
  asking?: Promise<void> | undefined;
  /** Whether the last check threw: this is logged once. */
  isUnknown?: boolean;
  readonly closing: AbortController;
}

/** Emits `changed` when a row starts or stops failing, `broken` when only a restart helps. */
export class Probes extends EventEmitter<{ changed: []; broken: [string] }> {
  readonly #rows = new Map<ProbeName, Asked>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    super();
    // Each worker listens, and each job that waits for the storage.
    this.setMaxListeners(0);
    this.#logger = logger;
  }

  /** Replaces the row's probe. It counts as healthy until the first check. */
  add<Name extends ProbeName>(name: Name, probe: Probe<Name>): void {
    void this.close(name);
    this.#rows.set(name, {
      ...probe,
      state: probeTable[name].states[0],
      failures: 0,
      closing: new AbortController(),
    });
  }

  /** Checks now, then at intervals until `close`. Concurrent calls share the answer. */
  async ask<Name extends ProbeName>(name: Name): Promise<ProbeState<Name>> {
    const row = this.#rows.get(name);
    if (row !== undefined) {
      row.asking ??= this.#ask(name, row).finally(() => {
        row.asking = undefined;
      });
      await row.asking;
    }
    return this.state(name);
  }

  state<Name extends ProbeName>(name: Name): ProbeState<Name> {
    return (this.#rows.get(name)?.state ?? probeTable[name].states[0]) as ProbeState<Name>;
  }

  isFailing(name: ProbeName): boolean {
    return this.state(name) === probeTable[name].states.at(-1);
  }

  /** Whether workers of the queue start no jobs now. */
  pauses(queue: string): boolean {
    return [...this.#rows.keys()].some((name) => {
      const { pauses }: ProbeRow = probeTable[name];
      return this.isFailing(name) && (pauses === 'every queue' || pauses === queue);
    });
  }

  figures(): [Figure, number][] {
    return [...this.#rows.values()].flatMap(
      (row) => Object.entries(row.figures?.() ?? {}) as [Figure, number][],
    );
  }

  async close(...names: ProbeName[]): Promise<void> {
    const rows = names
      .flatMap((name) => this.#rows.get(name) ?? [])
      .filter(({ closing }) => !closing.signal.aborted);
    for (const row of rows) {
      row.closing.abort();
      clearTimeout(row.timer);
    }
    await Promise.all(rows.map((row) => row.close?.()));
  }

  async #ask(name: ProbeName, row: Asked): Promise<void> {
    clearTimeout(row.timer);
    const state = await this.#stateNow(name, row);
    row.isUnknown = state === undefined;
    if (state === undefined) row.failures = 0;
    else this.#note(name, row, state);
    if (row.closing.signal.aborted) return;
    const { everyMs, everyMsWhileFailing }: ProbeRow = probeTable[name];
    const waitMs = (this.isFailing(name) ? everyMsWhileFailing : undefined) ?? row.everyMs ?? everyMs;
    row.timer = setTimeout(() => void this.ask(name), waitMs).unref();
  }

  async #stateNow(name: ProbeName, row: Asked): Promise<Asked['state'] | undefined> {
    try {
      return await row.ask(row.closing.signal);
    } catch (error) {
      const isNews = !row.isUnknown && !row.closing.signal.aborted;
      this.#logger[isNews ? 'warn' : 'debug']({ err: error, probe: name }, 'a probe could not be asked');
      return undefined;
    }
  }

  #note(name: ProbeName, row: Asked, state: Asked['state']): void {
    const { states, failureThreshold = 1, failed, recovered, endsProcess }: ProbeRow = probeTable[name];
    const isFailure = state === states.at(-1);
    row.failures = isFailure ? row.failures + 1 : 0;
    if (isFailure && row.failures < failureThreshold) return;
    const wasFailing = this.isFailing(name);
    row.state = state;
    if (row.closing.signal.aborted || wasFailing === isFailure) return;
    // What ends the process is reported by its end.
    if (isFailure && !endsProcess) this.#logger.error(row.details?.() ?? {}, failed);
    if (!isFailure && recovered !== undefined) this.#logger.warn(recovered);
    this.emit('changed');
    if (isFailure && endsProcess) this.emit('broken', failed);
  }
}
