/** Ending a BullMQ worker in bounded time. */
import type { Worker } from 'bullmq';

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
