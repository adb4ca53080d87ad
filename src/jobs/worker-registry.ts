/**
 * Which worker processes live, and what becomes of the jobs of one that does not. Each says every second that it does; whoever sees another silent hands its jobs
 * on, long before their locks run out: at once when it lived on the same machine and is no more, later when it may be frozen or cut off. Only a death counts
 * against a job (decisions A7). Nobody's clock is asked: silence is what an observer, who had answers all the while, has seen itself.
 */
import { randomBytes } from 'node:crypto';
import { Job } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { fateOf, homeOfThisProcess } from 'soundpost-base/process-home';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { heldJobs, wakeWorker } from './bullmq-internals.ts';
import { DEAD_WORKERS_KEY, type QueueName, queueNames, WORKER_BEATS_KEY } from './names.ts';
import type { Queues } from './open-queue.ts';

interface WorkerRegistryOptions {
  /** A connection of the role `request`. The caller closes it. */
  readonly redis: Redis;
  /** On which jobs are handed on. The caller closes them. */
  readonly queues: Queues;
  /** Default: this process' own, by which those of the same machine see that it is no more; see packages/base/src/process-home.ts. */
  readonly home?: string | undefined;
  readonly logger: Logger;
}

const BEAT_MS = 1000;
/** An observer who had no answer for so long begins to observe anew: what kept it from hearing may have kept the others from speaking. */
const DEAF_MS = 3000;
/** A process of this machine that was silent for so long is looked for. One that only lives on a copy of this machine goes on beating. */
const SILENT_HERE_MS = 1500;
/** After so long a silence the extractions of a process that nobody can look for are begun by another one. */
const SILENT_ELSEWHERE_MS = 8000;
/** Silence of which nobody knows better is death. Whoever speaks again has not died. */
const PRESUMED_DEAD_MS = 60_000;

/** A hash: process → its record. */
const WORKERS = ownKey('workers');
const KEYS = [WORKERS, WORKER_BEATS_KEY, DEAD_WORKERS_KEY];

const WorkerRecord = z.object({
  home: z.string().default(''),
  /** Ids of BullMQ's workers. */
  workers: z.partialRecord(z.enum(queueNames), z.string()).default({}),
});
type WorkerRecord = z.infer<typeof WorkerRecord>;

const beat = loadScript(new URL('./lua/worker-beat.lua', import.meta.url));
const bury = loadScript(new URL('./lua/worker-bury.lua', import.meta.url));

/** What this process has seen of another. */
interface Sighting {
  readonly lastBeat: string;
  readonly sinceMs: number;
  isHandedOn: boolean;
}

export class WorkerRegistry {
  /** Of this process. */
  readonly id = randomBytes(8).toString('hex');
  readonly #options: WorkerRegistryOptions;
  readonly #workers: WorkerRecord['workers'] = {};
  #sightings = new Map<string, Sighting>();
  #heardMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: WorkerRegistryOptions) {
    this.#options = options;
  }

  /** Notes one of BullMQ's workers of this process, by its id. Resolves when the others can know of it, or Redis was away: then it may take jobs. */
  async add(queue: QueueName, workerId: string): Promise<void> {
    this.#workers[queue] = workerId;
    await this.#next();
  }

  /** To be called when the process has handed back its jobs: nobody has to look after them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#round;
    const { redis } = this.#options;
    await redis
      .multi()
      .zrem(WORKER_BEATS_KEY, this.id)
      .hdel(WORKERS, this.id)
      .exec()
      .catch(() => undefined);
  }

  #next(): Promise<void> {
    clearTimeout(this.#timer);
    this.#round = this.#round
      .then(() => this.#beat())
      .catch((error: Error) =>
        this.#options.logger.debug({ error: error.message }, 'the registry of workers could not be reached'),
      )
      .then(() => {
        clearTimeout(this.#timer);
        if (!this.#isClosed) this.#timer = setTimeout(() => void this.#next(), BEAT_MS);
      });
    return this.#round;
  }

  async #beat(): Promise<void> {
    const { redis, home = await homeOfThisProcess() } = this.#options;
    const record: WorkerRecord = { home, workers: this.#workers };
    const askedMs = performance.now();
    const args = [this.id, JSON.stringify(record)];
    const flat = (await beat.run(redis, KEYS, args)) as string[];
    const heardMs = performance.now();
    const isDeaf = heardMs - this.#heardMs > DEAF_MS;
    const before = isDeaf ? new Map<string, Sighting>() : this.#sightings;
    this.#heardMs = heardMs;
    this.#sightings = new Map();
    for (let at = 0; at < flat.length; at += 2) {
      const [id = '', lastBeat = ''] = flat.slice(at, at + 2);
      if (id === this.id) continue;
      const known = before.get(id);
      const sighting =
        known?.lastBeat === lastBeat ? known : { lastBeat, sinceMs: heardMs, isHandedOn: false };
      this.#sightings.set(id, sighting);
      await this.#judge(id, sighting, askedMs - sighting.sinceMs);
    }
  }

  async #judge(id: string, sighting: Sighting, silentMs: number): Promise<void> {
    if (silentMs < SILENT_HERE_MS) return;
    const { redis, logger } = this.#options;
    const record = WorkerRecord.parse(JSON.parse((await redis.hget(WORKERS, id)) ?? '{}'));
    const { extract } = record.workers;
    const fate = await fateOf(record.home);
    if (fate === 'dead' || (fate === 'unknown' && silentMs > PRESUMED_DEAD_MS)) {
      if ((await bury.run(redis, KEYS, [id, sighting.lastBeat])) === 1) {
        logger.warn({ worker: record.home }, 'a worker process has died: its jobs are begun anew');
        await this.#handOn(fate === 'dead' ? record.workers : { extract });
      }
    } else if (silentMs > SILENT_ELSEWHERE_MS && !sighting.isHandedOn) {
      sighting.isHandedOn = true;
      logger.warn({ worker: record.home }, 'a worker process is silent: its extractions are begun anew');
      await this.#handOn({ extract });
    }
  }

  async #handOn(workers: WorkerRecord['workers']): Promise<void> {
    const { redis, queues, logger } = this.#options;
    for (const [name, workerId] of Object.entries(workers) as [QueueName, string | undefined][]) {
      if (workerId === undefined) continue;
      for (const { jobId, token } of await heldJobs(redis, name)) {
        if (!token.startsWith(`${workerId}:`)) continue;
        try {
          await (await Job.fromId(queues[name], jobId))?.moveToWait(token);
          if (name === 'extract') await wakeWorker(redis);
          logger.info({ jobId, queue: name }, 'a job is handed on');
        } catch (error) {
          // Another observer has done so, or the silent one has ended it.
          logger.debug({ jobId, err: error }, 'a job was not there to be handed on');
        }
      }
    }
  }
}
