/** Ctrl-C: the first one ends the work in order, a second one ends the process at once. */
import { Interrupted } from './ending.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const EXIT_CODE = 130;

/**
 * @param work is told by the signal, and tidies up before it rejects
 * @throws Interrupted where it was told, whatever the work made of it; else what the work throws
 */
export async function interruptible<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interrupt = new AbortController();
  const onSignal = (): void => {
    if (interrupt.signal.aborted) process.exit(EXIT_CODE);
    interrupt.abort(new Interrupted());
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    return await work(interrupt.signal);
  } catch (error) {
    throw interrupt.signal.aborted ? interrupt.signal.reason : error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}
