/** A Redis stream that one process at a time works through, on a real Redis: what it leaves unfinished is what the next one begins with. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StreamConsumer } from '../../src/gateway/stream-consumer.ts';
import { createLogger } from '../../src/logger.ts';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { until } from '../until.ts';

const STREAM = 'entries';
/** Longer than any test: what is claimed earlier was not waited for. */
const CLAIM_IDLE_MS = 60_000;

let server: TestRedis;
let redis: Redis;
const consumers: StreamConsumer[] = [];

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.socketPath);
});
beforeEach(() => redis.flushall());
afterEach(() => Promise.all(consumers.splice(0).map((consumer) => consumer.close())));
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

/** Gives the duty to one after the other. */
class Duty {
  #given = Promise.withResolvers<AbortSignal>();
  #lost = new AbortController();

  give(): void {
    this.#lost = new AbortController();
    this.#given.resolve(this.#lost.signal);
  }

  lose(): void {
    this.#given = Promise.withResolvers();
    this.#lost.abort(new Error('the duty was lost'));
  }

  readonly on = (signal: AbortSignal): Promise<AbortSignal> =>
    Promise.race([
      this.#given.promise,
      new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    ]);
}

interface Worker {
  readonly duty: Duty;
  /** What it has begun with, in order. */
  readonly begun: string[];
  readonly finished: string[];
  /** Whether an entry waits until the worker is told to stop. */
  hold: boolean;
}

async function startWorker({ hold }: { readonly hold: boolean }): Promise<Worker> {
  const worker: Worker = { duty: new Duty(), begun: [], finished: [], hold };
  const consumer = new StreamConsumer({
    redis: new Redis(server.socketPath),
    stream: STREAM,
    group: 'workers',
    from: '0',
    claimIdleMs: CLAIM_IDLE_MS,
    removeFinished: false,
    onDuty: worker.duty.on,
    logger: createLogger('silent'),
    handle: async ({ fields }, signal) => {
      const { name = '' } = fields;
      worker.begun.push(name);
      if (worker.hold) {
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
      }
      worker.finished.push(name);
    },
  });
  consumers.push(consumer);
  await consumer.start();
  return worker;
}

const add = (name: string): Promise<unknown> => redis.xadd(STREAM, '*', 'name', name);
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `entry ${index + 1}`);

it('begins with what the one before had taken and not finished, however many, and then with what came since', async () => {
  const before = await startWorker({ hold: true });
  const after = await startWorker({ hold: false });
  for (const name of names(20)) await add(name);
  before.duty.give();
  await until('the first entry is begun', () => before.begun.length === 1);

  before.duty.lose();
  await add('entry 21');
  after.duty.give();

  await until('all is finished', () => after.finished.length === 21);
  expect(after.finished).toEqual(names(21));
  expect(before.begun).toEqual(['entry 1']);
  expect(before.finished).toEqual([]);
});

it('leaves to the next one what came while the one before was still reading', async () => {
  const before = await startWorker({ hold: false });
  const after = await startWorker({ hold: false });
  before.duty.give();
  await add('entry 1');
  await until('the first is finished', () => before.finished.length === 1);

  // That gets what comes next.
  await until('its next read blocks', async () => / flags=\w*b.* cmd=xreadgroup/.test(await clients()));
  before.duty.lose();
  await add('entry 2');
  await until('a read has taken it', async () => (await pending()) === 1);
  after.duty.give();
  await add('entry 3');

  await until('all is finished', () => after.finished.length === 2);
  expect(after.finished).toEqual(['entry 2', 'entry 3']);
  expect(before.begun).toEqual(['entry 1']);
});

it('goes on when the duty comes back', async () => {
  const worker = await startWorker({ hold: true });
  await add('entry 1');
  worker.duty.give();
  await until('it is begun', () => worker.begun.length === 1);
  worker.duty.lose();
  worker.hold = false;
  worker.duty.give();
  await until('it is finished', () => worker.finished.length === 1);
  expect(worker.begun).toEqual(['entry 1', 'entry 1']);
});

const clients = async (): Promise<string> => String(await redis.client('LIST'));

/** Entries that were taken and not finished. */
async function pending(): Promise<number> {
  const [count] = (await redis.xpending(STREAM, 'workers')) as [number];
  return count;
}
