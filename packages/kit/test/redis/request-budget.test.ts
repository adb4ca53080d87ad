/**
 * What the commands of one request wait for Redis, by a clock that the test moves: in a row, side by side, and after the answer. That all commands of
 * all routes are counted: test/api/request-budget.test.ts.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { connectRedis, type Redis } from '../../src/redis/connection.ts';
import { Replication } from '../../src/redis/replication.ts';
import { RequestBudget } from '../../src/redis/request-budget.ts';

const MS = 900;
/** Virtual time between two looks. */
const STEP_MS = 10;

let server: Server;
let redis: Redis;
/** Whether the server answers. */
let answers = true;
const sockets = new Set<Socket>();

/** Answers every command with OK, or none. */
beforeEach(async () => {
  answers = true;
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      const commands = chunk.toString('latin1').match(/^\*\d+\r$/gm) ?? [];
      if (answers) socket.write('+OK\r\n'.repeat(commands.length));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  redis = connectRedis({
    url: `redis://127.0.0.1:${port}`,
    role: 'request',
    deadlineMs: MS,
    logger: pino({ level: 'silent' }),
  });
  await redis.set('a', '1');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(async () => {
  vi.useRealTimers();
  redis.disconnect();
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});

const set = (): Promise<unknown> => redis.set('a', '1');
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** How long the work took by the virtual clock, which moves while the work is under way. */
async function took(work: Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  ended.catch(() => undefined);
  while (!isOver) {
    await turn();
    await turn();
    if (!isOver) vi.advanceTimersByTime(STEP_MS);
  }
  return performance.now() - startedMs;
}

/** Best effort, one after the other. */
async function inARow(count: number): Promise<void> {
  for (let nth = 0; nth < count; nth += 1) await set().catch(() => undefined);
}

describe('A6. Redis that hangs is waited for once a request', () => {
  it('by commands in a row', async () => {
    answers = false;
    const oneMs = await took(new RequestBudget().run(() => inARow(1)));
    expect(oneMs).toBeGreaterThanOrEqual(MS);
    const ms = await took(new RequestBudget().run(() => inARow(10)));
    expect(ms).toBeLessThan(oneMs + 20 * STEP_MS);
  });

  it('by commands in a row that begin while another waits', async () => {
    answers = false;
    const budget = new RequestBudget();
    const first = budget.run(set);
    first.catch(() => undefined);
    await took(Promise.race([first.catch(() => undefined), new Promise((r) => setTimeout(r, MS / 2))]));
    const ms = await took(budget.run(() => inARow(3)));
    expect(ms).toBeLessThan(MS);
  });

  it('also by one that is sent as soon as another of those that wait is given up', async () => {
    answers = false;
    const budget = new RequestBudget();
    const [first, other] = budget.run(() => [set().catch(set), set()]);
    other?.catch(() => undefined);
    const ms = await took(Promise.race([first, new Promise((r) => setTimeout(r, 3 * MS))]));
    expect(ms).toBeLessThan(2 * MS);
  });

  it('and again by one that goes on for longer, such as an upload', async () => {
    answers = false;
    const budget = new RequestBudget();
    await took(budget.run(() => inARow(2)));
    vi.advanceTimersByTime(2000);
    expect(await took(budget.run(() => inARow(1)))).toBeGreaterThanOrEqual(MS);
  });

  it('answers in time cost nothing', async () => {
    const budget = new RequestBudget();
    await budget.run(() => inARow(500));
    answers = false;
    expect(await took(budget.run(() => inARow(1)))).toBeGreaterThanOrEqual(MS);
  });

  it('work that requests share is in the budget of none', async () => {
    const replication = new Replication({ redis, replicas: 1 });
    const confirm = (): Promise<unknown> => replication.confirm(['a']).catch(() => undefined);
    answers = false;
    const used = new RequestBudget();
    await took(used.run(() => inARow(1)));
    void used.run(confirm);
    const ms = await took(new RequestBudget().run(confirm));
    expect(ms).toBeGreaterThanOrEqual(2 * MS);
  });

  it('what an answered request has left running waits for itself', async () => {
    answers = false;
    const budget = new RequestBudget();
    await took(budget.run(() => inARow(1)));
    budget.end();
    const ms = await took(budget.run(() => inARow(2)));
    expect(ms).toBeGreaterThanOrEqual(2 * MS);
  });
});
