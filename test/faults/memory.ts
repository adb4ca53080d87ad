/** How much a process of a stand holds when its garbage is collected. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import type { Stand } from './stand.ts';
import type { Supervised } from './supervised.ts';

/** Objects of JavaScript and buffers outside of its heap, bytes. Waits until the process is ready. */
export async function heldBytes({ folder }: Stand, process: Supervised): Promise<number> {
  await process.ready();
  const path = join(folder, 'kills', `memory.${process.pid}`);
  await rm(path, { force: true });
  // The preload hears it, collects and writes (preload.ts).
  process.signal('SIGUSR2');
  const text = await until(`${process.name} says what it holds`, () =>
    readFile(path, 'utf8').catch(() => undefined),
  );
  const { heapUsed, external } = JSON.parse(text);
  return heapUsed + external;
}
