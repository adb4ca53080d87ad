/** A process that is started again whenever it ends, as systemd or Kubernetes would do. */
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from 'soundpost-testing/processes';
import type { RunningProcess } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';

/** systemd's RestartSec is 100 ms unless it is set. */
const RESTART_AFTER_MS = 100;

export class Supervised {
  readonly name: string;
  readonly #start: () => RunningProcess;
  readonly #ready: RegExp;
  #current: RunningProcess;
  #ended = false;
  #kept: Promise<void>;
  /** Every start, the first included. */
  starts = 0;
  /** What the process wrote that ended last. */
  lastWords = '';
  /** Exit codes of those that ended; null when a signal ended one. */
  readonly exits: (number | null)[] = [];

  /** @param ready what the process says once it can work, with its address as the first group */
  constructor(name: string, ready: RegExp, start: () => RunningProcess) {
    this.name = name;
    this.#ready = ready;
    this.#start = start;
    this.#current = this.#begin();
    this.#kept = this.#keep();
  }

  #begin(): RunningProcess {
    this.starts += 1;
    return this.#start();
  }

  async #keep(): Promise<void> {
    while (!this.#ended) {
      this.exits.push(await this.#current.exited);
      this.lastWords = this.#current.output();
      if (this.#ended) return;
      await delay(RESTART_AFTER_MS);
      if (!this.#ended) this.#current = this.#begin();
    }
  }

  get pid(): number {
    return this.#current.pid;
  }

  /** Whether another one is started in its place when it ends. */
  get isKept(): boolean {
    return !this.#ended;
  }

  /** What the present process has written. */
  get output(): string {
    return this.#current.output();
  }

  /** The address that the present process gives once it can work; waits over restarts. */
  async ready(timeoutMs = 120_000): Promise<string> {
    return until(
      `${this.name} is ready`,
      // One that has just died had said so, too.
      () => (isAlive(this.pid) ? this.#ready.exec(this.#current.output())?.[1] : undefined),
      timeoutMs,
    ).catch((error: Error) => {
      throw new Error(`${error.message}; it ended ${this.exits.length} times:\n${this.lastWords}`);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#current.signal(signal);
  }

  /** Ends the process without a chance to clean up; resolves once it is gone. Another one is started in its place. */
  async kill(): Promise<void> {
    const { pid } = this.#current;
    this.#current.signal('SIGKILL');
    await until(`${this.name} is gone`, () => !isAlive(pid));
  }

  /** Resolves once the process that ran at this moment has ended and another one is ready. */
  async replaced(): Promise<void> {
    const { starts } = this;
    await until(`${this.name} is started again`, () => this.starts > starts, 60_000);
    await this.ready();
  }

  /** Starts it no more; what runs is ended by whoever owns the folder. */
  async release(): Promise<void> {
    this.#ended = true;
    if (isAlive(this.pid)) this.#current.signal('SIGKILL');
    await this.#kept;
  }
}
