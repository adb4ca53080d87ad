/**
 * Loaded into a process with `node --import`: how long its event loop stands, by the processor time
 * of its own thread, so that a machine on which many run blames nobody. A line for each stand, in
 * the folder STANDS: when it ended (ms) and how long it was (ms).
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const SHORTEST_MS = 10;
const LOOK_EVERY_MS = 2;

const { STANDS: folder } = process.env;

if (isMainThread && folder !== undefined) {
  const path = join(folder, process.argv[2] ?? '');
  let before = process.threadCpuUsage();
  setInterval(() => {
    const now = process.threadCpuUsage();
    const ms = (now.user + now.system - before.user - before.system) / 1000;
    before = now;
    if (ms >= SHORTEST_MS) appendFileSync(path, `${Date.now()} ${ms}\n`);
  }, LOOK_EVERY_MS).unref();
}
