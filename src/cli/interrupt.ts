/** Ctrl-C: the first ends the work in order, the second ends the process at once. */
import { Interrupted } from './ending.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const EXIT_CODE = 130;

/**
 * @param work follows the signal, and tidies up before it rejects
 * @throws Interrupted if interrupted, whatever the work did; else what the work throws
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
