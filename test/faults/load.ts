/** Submissions that go on until they are stopped; each is sent under its key until it is accepted. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Accepted, submitSurely } from './persistent-client.ts';
import type { Stand } from './stand.ts';
import type { Submission } from './submission.ts';

/** Between two submissions, which do not stop while the service is away. */
const EVERY_MS = 250;

export class Load {
  readonly #stand: Stand;
  readonly #everyMs: number;
  readonly #submitted: Promise<Accepted>[] = [];
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(on: Stand, everyMs = EVERY_MS) {
    this.#stand = on;
    this.#everyMs = everyMs;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#submit({ webhook: true, voice: this.#submitted.length % 3 === 0 });
      await delay(this.#everyMs);
    }
  }

  #submit(submission: Submission): void {
    const submitted = submitSurely(this.#stand, { ...submission, idempotencyKey: randomUUID() });
    submitted.catch(() => undefined);
    this.#submitted.push(submitted);
  }

  async stop(): Promise<Accepted[]> {
    this.#stopped = true;
    await this.#running;
    return Promise.all(this.#submitted);
  }
}
