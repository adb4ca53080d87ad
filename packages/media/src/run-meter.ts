/** What a tool uses while it runs, by Linux' /proc; elsewhere only its end tells. */
import { readdir, readFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';

/**
 * Called when a tool starts (with 0), every second, and at its end.
 * @param processorSeconds since the call before
 * @returns whether the tool goes on at nice 19
 */
export type ToolMeter = (processorSeconds: number) => boolean;

const LOOK_EVERY_MS = 1000;
/** USER_HZ, the same on every Linux. */
const TICKS_PER_SECOND = 100;

export class RunMeter {
  readonly #meter: ToolMeter | undefined;
  #timer: NodeJS.Timeout | undefined;
  #seenMs = performance.now();
  #seenSeconds = 0;
  #toldSeconds = 0;

  constructor(meter: ToolMeter | undefined) {
    this.#meter = meter;
  }

  follow(pid: number): void {
    if (this.#meter === undefined) return;
    if (this.#meter(0)) void lower(pid);
    this.#timer = setInterval(() => void this.#look(pid), LOOK_EVERY_MS);
  }

  async #look(pid: number): Promise<void> {
    const seconds = await processorSecondsOf(pid);
    if (this.#timer === undefined || seconds <= this.#seenSeconds) return;
    this.#seenMs = performance.now();
    this.#seenSeconds = seconds;
    if (this.#tell(seconds)) await lower(pid);
  }

  #tell(totalSeconds: number): boolean {
    const seconds = Math.max(0, totalSeconds - this.#toldSeconds);
    this.#toldSeconds += seconds;
    return this.#meter?.(seconds) ?? false;
  }

  /** @param measured by the tool itself @returns the total; unmeasured time counts by the clock */
  end(measured?: number): number {
    clearInterval(this.#timer);
    this.#timer = undefined;
    const total = measured ?? this.#seenSeconds + (performance.now() - this.#seenMs) / 1000;
    this.#tell(total);
    return total;
  }
}

/** Of a process, its threads and all that it started: a sandbox is the parent of its tool. */
async function processorSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // utime, stime, and those of children that have ended; the name before them may hold spaces.
  const ticks = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 16);
  let seconds = ticks.reduce((sum, field) => sum + Number(field), 0) / TICKS_PER_SECOND;
  for (const child of await childrenOf(pid)) seconds += await processorSecondsOf(child);
  return seconds;
}

async function childrenOf(pid: number): Promise<number[]> {
  const ids = await readFile(`/proc/${pid}/task/${pid}/children`, 'latin1').catch(() => '');
  return ids.split(' ').filter(Boolean).map(Number);
}

/** Each thread has its own priority, which the threads that it starts inherit. */
async function lower(pid: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`).catch(() => [])) {
    try {
      setPriority(Number(thread), constants.priority.PRIORITY_LOW);
    } catch {
      // ESRCH: it has ended.
    }
  }
  for (const child of await childrenOf(pid)) await lower(child);
}
