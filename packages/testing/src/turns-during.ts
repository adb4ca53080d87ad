/** Whether long work lets others run, by counting. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Turns of the event loop that pass until the work is done. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const counting = (async () => {
    for (; !isOver; turns += 1) await nextTurn();
  })();
  await work();
  isOver = true;
  await counting;
  return turns;
}
