/** How much memory the processes below this one have taken at most. */
import { readFileSync } from 'node:fs';
import { descendants, programOf } from 'soundpost-testing/processes';

const EVERY_MS = 25;

/** The kernel keeps each process's peak (VmHWM, proc(5)), so that one look near the end of its life is enough. */
export class MemoryWatch {
  #peakBytes = 0;
  #peakProgram = '';
  readonly #timer = setInterval(() => this.#look(), EVERY_MS);

  get peakBytes(): number {
    return this.#peakBytes;
  }

  get peakProgram(): string {
    return this.#peakProgram;
  }

  reset(): void {
    this.#peakBytes = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const pid of descendants(process.pid)) {
      const bytes = peakOf(pid);
      if (bytes > this.#peakBytes) {
        this.#peakBytes = bytes;
        this.#peakProgram = programOf(pid);
      }
    }
  }
}

function peakOf(pid: number): number {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
