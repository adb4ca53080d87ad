/**
 * Redis and the results know each other (decisions E): each holds a mark with the id of the
 * installation and the number of its renewals. So a process that starts sees that one of them was
 * lost, replaced, or, by the number, that Redis was restored from a backup.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import type { Probes } from 'soundpost-kit/observe/probes';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import { z } from 'zod';
import { ConfigurationError } from './config.ts';

const REDIS_MARK = ownKey('mark');
/** Storage key. */
export const RESULTS_MARK = 'soundpost-mark.json';

interface Mark {
  readonly id: string;
  /**
   * In Redis 0 until the results have the mark too. The results' number follows, so it is never
   * higher.
   */
  readonly renewals: number;
}

const Mark = z.object({ id: z.string().min(1), renewals: z.coerce.number().int().nonnegative().catch(0) });
/** What stands there is not ours, or was damaged. */
const UNREADABLE: Mark = { id: 'damaged', renewals: 0 };
const LARGEST_MARK_BYTES = 4096;

interface Pair {
  readonly redis: Mark | undefined;
  readonly results: Mark | undefined;
}

interface Sides {
  readonly redis: Redis;
  /** Fails in time where it hangs. */
  readonly storage: Pick<Storage, 'read' | 'write' | 'ping'>;
  /** Where results lie, for people. */
  readonly place: string;
}

/** `unfinished`: a first start, or an adoption, that still has to mark the results. */
type Verdict =
  | { readonly kind: 'same' | 'new' | 'unfinished' }
  | { readonly kind: 'refused'; readonly problem: string; readonly remedy: string };

type MarksState = Verdict & Pair;

const TO_GO_ON =
  'to keep both, start once with --adopt (ADOPT=1); docs/how-to/disasters.md says what that costs';

function judged({ redis, results }: Pair, place: string): Verdict {
  if (redis === undefined && results === undefined) return { kind: 'new' };
  const refused = (problem: string, remedy: string): Verdict => ({
    kind: 'refused',
    problem,
    remedy: `${remedy}; ${TO_GO_ON}`,
  });
  if (redis === undefined) {
    return refused(
      `Redis does not know the results in ${place} (mark ${shown(results)}): it was lost or emptied, or REDIS_URL names another one`,
      'restore Redis from its backup, or correct REDIS_URL',
    );
  }
  if (results === undefined) {
    if (redis.renewals === 0) return { kind: 'unfinished' };
    return refused(
      `Redis knows results (mark ${shown(redis)}) that are not in ${place}: they were moved, lost or emptied, or DATA_DIR or STORAGE_URL names another place`,
      'bring them back, or correct DATA_DIR or STORAGE_URL',
    );
  }
  if (results.id !== redis.id) {
    return refused(
      `Redis (mark ${shown(redis)}) and the results in ${place} (mark ${shown(results)}) belong to different installations`,
      'correct REDIS_URL, or DATA_DIR or STORAGE_URL, so that they name two that belong together',
    );
  }
  if (redis.renewals === 0) return { kind: 'unfinished' };
  if (results.renewals > redis.renewals) {
    return refused(
      `Redis is older than the results in ${place} (mark ${shown(redis)}, renewal ${redis.renewals}; there ${results.renewals}): it was restored from a backup, or has lost what it wrote last`,
      'restore a newer backup of Redis if there is one',
    );
  }
  return { kind: 'same' };
}

function shown(mark: Mark | undefined): string {
  return mark?.id.slice(0, 8) ?? '';
}

/** A process that was just marking both may have been seen in the middle. */
const LOOKS = 2;
const LOOK_AGAIN_MS = 200;

/** Read-only. Rejects where Redis or the storage does not answer: that is not the same as empty. */
export async function lookAtMarks(sides: Sides): Promise<MarksState> {
  for (let looks = 1; ; looks += 1) {
    const pair = await readPair(sides);
    const verdict = judged(pair, sides.place);
    if (verdict.kind !== 'refused' || looks === LOOKS) return { ...verdict, ...pair };
    await delay(LOOK_AGAIN_MS);
  }
}

/** The results' first: theirs is written after that of Redis. */
async function readPair({ redis, storage }: Sides): Promise<Pair> {
  // Throws where the bucket itself is not there.
  await storage.ping();
  const results = await readResultsMark(storage);
  return { results, redis: Mark.safeParse(await redis.hgetall(REDIS_MARK)).data };
}

async function readResultsMark(storage: Sides['storage']): Promise<Mark | undefined> {
  try {
    const range = { start: 0, end: LARGEST_MARK_BYTES - 1 };
    const content = await text(await storage.read(RESULTS_MARK, range));
    return parsedMark(content);
  } catch (error) {
    if (error instanceof ObjectNotFound) return undefined;
    throw error;
  }
}

function parsedMark(content: string): Mark {
  try {
    return Mark.parse(JSON.parse(content));
  } catch {
    return UNREADABLE;
  }
}

const begin = loadScript(new URL('./lua/mark-begin.lua', import.meta.url));
const renew = loadScript(new URL('./lua/mark-renew.lua', import.meta.url));

interface MarksOptions extends Sides {
  /** `--adopt` */
  readonly adopt: boolean;
  /** The process's. Its row `marks` pauses a worker whose two sides no longer belong together. */
  readonly probes: Probes;
  readonly logger: Logger;
}

const RENEW_EVERY_MS = 60 * 60 * 1000;
const RETRY_MS = 5000;
/**
 * Redis' file has a renewal for sure before the results have it: a power cut must not make Redis
 * look old.
 */
const WRITTEN_AFTER_MS = 5000;
/** Of several processes that adopt at once, each lets the others finish. */
const TRIES = 10;

export class Marks {
  readonly #options: MarksOptions;
  readonly #closing = new AbortController();
  /** Of this process's installation, once both sides have it. */
  #id: string | undefined;
  #renewing: Promise<void> = Promise.resolve();

  constructor(options: MarksOptions) {
    this.#options = options;
  }

  /**
   * Changes nothing. A side that does not answer is no reason to refuse.
   * @throws ConfigurationError if the two do not belong together
   */
  async demand(): Promise<void> {
    const state = await this.#unlessAway(() => lookAtMarks(this.#options));
    if (state?.kind === 'refused' && !this.#options.adopt) throw refusal(state);
  }

  /**
   * Marks both where neither is marked, and renews the marks from then on.
   * @returns rejects with a ConfigurationError if a side that was away at the start turns out to be
   * the wrong one
   * @throws ConfigurationError if the two do not belong together
   */
  async start(): Promise<{ readonly refused: Promise<never> }> {
    const isSettled = await this.#unlessAway(() => this.#settle().then(() => true));
    this.#watch();
    const refused = Promise.withResolvers<never>();
    // Nobody may be waiting yet.
    refused.promise.catch(() => undefined);
    this.#renewing = this.#keep(isSettled === true).catch(refused.reject);
    return { refused: refused.promise };
  }

  /** Renews them a last time: a backup of Redis from before is seen to be one. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#options.probes.close('marks');
    await this.#renewing;
    if (this.#id !== undefined) await this.#renew().catch(() => undefined);
  }

  #watch(): void {
    const { probes } = this.#options;
    let state: MarksState | undefined;
    probes.add('marks', {
      ask: async () => {
        state = await lookAtMarks(this.#options);
        return state.kind === 'refused' ? 'apart' : 'same';
      },
      details: () => ({ ...state }),
    });
    void probes.ask('marks');
  }

  async #keep(isSettled: boolean): Promise<void> {
    const { signal } = this.#closing;
    for (let settled = isSettled; !signal.aborted; ) {
      if (settled) await this.#unlessAway(() => this.#renew());
      await delay(settled ? RENEW_EVERY_MS : RETRY_MS, undefined, { signal, ref: false }).catch(
        () => undefined,
      );
      if (!settled && !signal.aborted) {
        settled = (await this.#unlessAway(() => this.#settle().then(() => true), 'debug')) ?? false;
      }
    }
  }

  /** Makes both sides have one mark. */
  async #settle(): Promise<void> {
    const { redis, adopt, logger, place } = this.#options;
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const state = await lookAtMarks(this.#options);
      if (state.kind === 'same') {
        this.#id = state.redis?.id;
        return;
      }
      const isHalfAdopted = adopt && state.redis?.renewals === 0;
      if (state.kind === 'unfinished' || isHalfAdopted) {
        await this.#finish(state.redis?.id ?? '');
      } else {
        if (state.kind === 'refused') {
          if (!adopt) throw refusal(state);
          logger.warn({ place }, `--adopt: ${state.problem}; they belong together from now on`);
        }
        await begin.run(redis, [REDIS_MARK], [state.redis?.id ?? '', randomUUID()]);
      }
    }
    throw new Error('the marks of Redis and of the results change again and again');
  }

  async #finish(id: string): Promise<void> {
    await this.#writeResults({ id, renewals: 1 });
    await renew.run(this.#options.redis, [REDIS_MARK], [id]);
  }

  /** Not where the two no longer belong together: the probe and the next start say so. */
  async #renew(): Promise<void> {
    const { redis } = this.#options;
    const state = await lookAtMarks(this.#options);
    const id = state.redis?.id;
    if (state.kind === 'refused' || id === undefined || id !== this.#id) return;
    const renewals = Number(await renew.run(redis, [REDIS_MARK], [id]));
    if (renewals === 0) return;
    await delay(WRITTEN_AFTER_MS, undefined, { signal: this.#closing.signal, ref: false }).catch(
      () => undefined,
    );
    await this.#writeResults({ id, renewals });
  }

  async #writeResults(mark: Mark): Promise<void> {
    const about = 'Soundpost: the Redis that these files belong to has the same mark';
    await this.#options.storage.write(
      RESULTS_MARK,
      Readable.from([`${JSON.stringify({ ...mark, about })}\n`]),
    );
  }

  /** Undefined, with a line in the log, where a side does not answer. */
  async #unlessAway<Result>(work: () => Promise<Result>, level: 'warn' | 'debug' = 'warn') {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ConfigurationError) throw error;
      this.#options.logger[level](
        { err: error },
        'cannot check now whether Redis and the results belong together; checking again later',
      );
      return undefined;
    }
  }
}

function refusal({ problem, remedy }: { readonly problem: string; readonly remedy: string }): Error {
  return new ConfigurationError(`${problem}: ${remedy}`);
}
