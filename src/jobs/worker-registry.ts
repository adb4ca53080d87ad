/**
 * Worker processes beat every second. A silent one's jobs are handed on before their locks expire:
 * at once if it died on the same machine, later if it may be frozen or cut off. Only a death counts
 * against a job (decisions A7). An observer trusts only silence that it has seen itself.
 */
import { randomBytes } from 'node:crypto';
import { Job } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { fateOf, homeOfThisProcess } from 'soundpost-base/process-home';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readable, readText, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { heldJobs, wakeWorker } from './bullmq-internals.ts';
import { DEAD_WORKERS_KEY, type QueueName, queueNames, WORKER_BEATS_KEY } from './names.ts';
import type { Queues } from './open-queue.ts';

interface WorkerRegistryOptions {
  /** A connection of the role `request`. The caller closes it. */
  readonly redis: Redis;
  /** For handing on jobs. The caller closes them. */
  readonly queues: Queues;
  /** Shows local observers whether it lives (packages/base/src/process-home.ts). Default: own. */
  readonly home?: string | undefined;
  readonly logger: Logger;
}

const BEAT_MS = 1000;
/** An observer without answers for this long starts over: others may be cut off too. */
const CUT_OFF_MS = 3000;
/** After this silence a process of this machine is looked up. A live one keeps beating. */
const SILENT_HERE_MS = 1500;
/** After this silence, extractions of a process on another machine are started elsewhere. */
const SILENT_ELSEWHERE_MS = 8000;
/** A process silent for so long is presumed dead; one that beats again is alive. */
const PRESUMED_DEAD_MS = 60_000;

/** Hash: process → its record. */
const WORKERS = ownKey('workers');
const KEYS = [WORKERS, WORKER_BEATS_KEY, DEAD_WORKERS_KEY];

const WorkerRecord = z.object({
  home: z.string().default(''),
  /** Ids of BullMQ's workers. */
  workers: z.partialRecord(z.enum(queueNames), z.string()).default({}),
});
type WorkerRecord = z.infer<typeof WorkerRecord>;

const beat = loadScript(new URL('./lua/worker-beat.lua', import.meta.url));
const markDead = loadScript(new URL('./lua/worker-mark-dead.lua', import.meta.url));

/** What this process has observed of another. */
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

  /** Registers a BullMQ worker, which can take jobs once others see it or Redis is down. */
  async add(queue: QueueName, workerId: string): Promise<void> {
    this.#workers[queue] = workerId;
    await this.#next();
  }

  /** Call once the process has returned its jobs: they need no care. */
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
    const args = [this.id, JSON.stringify(withEdition(record))];
    const flat = (await beat.run(redis, KEYS, args)) as string[];
    const heardMs = performance.now();
    const wasCutOff = heardMs - this.#heardMs > CUT_OFF_MS;
    const before = wasCutOff ? new Map<string, Sighting>() : this.#sightings;
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
    const stored = (await redis.hget(WORKERS, id)) ?? '{}';
    const [record] = readable([stored], (text) => readText(WorkerRecord, text));
    // Another edition's: those of its own judge it, and BullMQ's locks end in any case.
    if (record === undefined) return;
    const { extract } = record.workers;
    const fate = await fateOf(record.home);
    if (fate === 'dead' || (fate === 'unknown' && silentMs > PRESUMED_DEAD_MS)) {
      if ((await markDead.run(redis, KEYS, [id, sighting.lastBeat])) === 1) {
        logger.warn({ worker: record.home }, 'a worker process has died: its jobs start again');
        await this.#handOn(fate === 'dead' ? record.workers : { extract });
      }
    } else if (silentMs > SILENT_ELSEWHERE_MS && !sighting.isHandedOn) {
      sighting.isHandedOn = true;
      logger.warn({ worker: record.home }, 'a worker process is silent: its extractions start again');
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
          // Another observer handed it on, or the silent process finished it.
          logger.debug({ jobId, err: error }, 'a job was not there to be handed on');
        }
      }
    }
  }
}
