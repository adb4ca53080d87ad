/** A caller's own signal and a time limit as one signal, whose reason tells the two apart. */
import type { OutboundFailed } from './errors.ts';

interface Deadline {
  readonly signal: AbortSignal;
  /** Begins the time anew, for a limit of what may pass without progress. */
  renew(): void;
  /** To be called when the work is over: a timer that still runs would keep the process alive. */
  clear(): void;
}

/** @param tooLate the signal's reason when the time is over; the caller's own abort keeps its reason */
export function deadlineOf(ms: number, tooLate: OutboundFailed, signal?: AbortSignal): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(tooLate), ms);
  return {
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    renew: () => void timer.refresh(),
    clear: () => clearTimeout(timer),
  };
}
