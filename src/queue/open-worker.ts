/** BullMQ's workers: begun with what all of them need, and ended in bounded time. */
import { type Processor, type Telemetry, Worker, type WorkerOptions } from 'bullmq';
import type { Logger } from '../observe/logger.ts';
import type { Redis } from '../redis/connection.ts';
import { type QueueName, queueNames } from './names.ts';
import { connectionOptions } from './open-queue.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface WorkerSettings {
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  /** How long a worker may be silent before its job is given to another. */
  readonly lockSeconds: number;
  /** Where it is noted what this process has begun, so that another one takes it up when this one has died. */
  readonly registry?: WorkerRegistry | undefined;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/**
 * How often a worker looks for jobs whose worker is no more. BullMQ gives a job away in the second look that finds it in nobody's hands, and only one
 * look in an interval counts, whoever makes it: a lost job is taken up within its lock and two of these.
 */
const LOOKS_PER_LOCK = 6;

/** What is told to others must survive many deaths of whoever tells it. */
const MAX_STALLED = 100;

export function openWorker(
  name: QueueName,
  processor: Processor,
  { redis, lockSeconds, registry, logger, telemetry }: WorkerSettings,
  options: Pick<WorkerOptions, 'concurrency' | 'autorun' | 'maxStalledCount' | 'settings'>,
): Worker {
  const lockMs = lockSeconds * 1000;
  const worker = new Worker(queueNames[name], processor, {
    ...connectionOptions(redis, telemetry),
    maxStalledCount: MAX_STALLED,
    ...options,
    autorun: false,
    lockDuration: lockMs,
    // Redis takes whole milliseconds only.
    stalledInterval: Math.ceil(lockMs / LOOKS_PER_LOCK),
  }).on('error', (error) => logger.warn({ error: error.message }, `${name} queue`));
  // Before it has a job to lose.
  const known = registry?.add(name, worker.id) ?? Promise.resolve();
  if (options.autorun !== false) {
    known.then(() => worker.run()).catch((error: Error) => worker.emit('error', error));
  }
  return worker;
}

/** Beyond the grace, for what an abort needs to take effect; a Redis that is away would otherwise hold us for ever. */
const FORCE_AFTER_MS = 3000;

/**
 * Takes no more jobs and waits for those that run. After `graceMs` `giveUp` is called once, and a little later the
 * connection is cut: what runs then is found by others when its lock has expired.
 */
export async function closeWorker(worker: Worker, graceMs: number, giveUp: () => void): Promise<void> {
  const giving = setTimeout(giveUp, graceMs);
  const forcing = setTimeout(() => {
    worker.close(true).catch(() => undefined);
  }, graceMs + FORCE_AFTER_MS);
  const forced = new Promise<void>((resolve) => {
    setTimeout(resolve, graceMs + 2 * FORCE_AFTER_MS).unref();
  });
  try {
    await Promise.race([worker.close(), forced]);
  } finally {
    clearTimeout(giving);
    clearTimeout(forcing);
  }
}
