/** The mechanism behind both servers' Idempotency-Keys. */
import { Redis } from 'ioredis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type IdempotencyPolicy, once } from '../../src/http/idempotency.ts';

class Refused extends Error {}

/** As the API has it; the gateway's key stays bound after every failure. */
const policy: IdempotencyPolicy = {
  isUndone: (error) => error instanceof Refused,
  refusal: (reason) => new Error(reason),
};
const FINGERPRINT = '654a2f4db24f0c657f0008f8c4df00f445a72321e34216e0e338df5f3c7d0a75';
const record =
  '{soundpost}:sp:idempotency:tenant:68c780cd132a0299c7cd3fa8649783cbc2872a98d90cd4ed6b9696e3c61c4c68';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.socketPath);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

const run = <Answer>(work: (seed: string) => Promise<Answer>, fingerprint = FINGERPRINT) =>
  once<Answer>(redis, { record, fingerprint }, policy, ({ seed }) => work(seed));
const never = () => Promise.reject(new Error('it was done again'));

it('the first answer comes again, and another request is refused', async () => {
  expect(await run(async () => ({ id: 1 }))).toEqual({ answer: { id: 1 }, replayed: false });
  expect(await run(never)).toEqual({ answer: { id: 1 }, replayed: true });
  await expect(run(never, 'another')).rejects.toThrow('mismatch');
  expect(await redis.pttl(record)).toBeGreaterThan(23 * 60 * 60 * 1000);
});

it('a damaged answer has the same work done again, and a record of another type is replaced', async () => {
  const seeds: string[] = [];
  const note = async (seed: string) => seeds.push(seed);
  await run(note);
  await redis.hset(record, 'answer', '{"id":', 'until', 'x');
  expect(await run(note)).toMatchObject({ replayed: false });
  expect(seeds).toEqual([seeds[0], seeds[0]]);
  expect(await run(never)).toMatchObject({ replayed: true });
  await redis.del(record);
  await redis.lpush(record, 'x');
  expect(await run(async () => 1)).toMatchObject({ replayed: false });
});

it('while the first runs nobody else does, however long it takes', async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const first = run(() => promise);
  await until('it has begun', async () => (await redis.hget(record, 'until')) ?? undefined);
  await expect(run(never)).rejects.toThrow('in-progress');
  const began = Number(await redis.hget(record, 'until'));
  await until('it renews its lease', async () => Number(await redis.hget(record, 'until')) > began);
  resolve(7);
  expect(await first).toEqual({ answer: 7, replayed: false });
});

it('a refusal frees the key, also for another request', async () => {
  await expect(run(() => Promise.reject(new Refused('no')))).rejects.toThrow('no');
  expect(await run(async () => 2, 'another')).toEqual({ answer: 2, replayed: false });
});

it('the answer of work that is done does not wait for a Redis that hangs, and is kept once it wakes', async () => {
  const answer = await run(async () => {
    process.kill(server.pid, 'SIGSTOP');
    return 3;
  });
  process.kill(server.pid, 'SIGCONT');
  expect(answer).toEqual({ answer: 3, replayed: false });
  await until('it is kept', () => redis.hget(record, 'answer'));
  expect(await run(never)).toEqual({ answer: 3, replayed: true });
});

it('a refusal of a repetition frees no key whose work was done before', async () => {
  await redis.hset(record, { fingerprint: FINGERPRINT, seed: 'a', until: 0, owner: 'a dead one' });
  const refused = run(async () => {
    await redis.hset(record, { answer: '{"id":1}' });
    throw new Refused('no');
  });
  await expect(refused).rejects.toThrow('no');
  expect(await run(never)).toEqual({ answer: { id: 1 }, replayed: true });
});

it('after any other failure the same request may begin again at once, with the same seed', async () => {
  const seeds: string[] = [];
  const fail = (seed: string) => {
    seeds.push(seed);
    return Promise.reject(new Error('broken'));
  };
  await expect(run(fail)).rejects.toThrow('broken');
  await expect(run(fail)).rejects.toThrow('broken');
  await expect(run(never, 'another')).rejects.toThrow('mismatch');
  expect(seeds[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(seeds[1]).toBe(seeds[0]);
});

it('whoever lost the key to another one leaves its record alone', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const slow = run(() => promise);
  await until('it has begun', async () => (await redis.hget(record, 'until')) ?? undefined);
  // Its lease is over, and it cannot renew it any more.
  await redis.hset(record, { until: 0, owner: 'another one' });
  expect(await run(async () => 'second')).toEqual({ answer: 'second', replayed: false });
  resolve('first');
  await slow;
  expect(await run(never)).toEqual({ answer: 'second', replayed: true });
});

it('a request whose process died goes on with its seed, once its lease is over', async () => {
  const seed = '82f5fd5bc7efb9bf9465b16fa06e74fa';
  await redis.hset(record, {
    fingerprint: FINGERPRINT,
    seed,
    owner: 'a dead one',
    until: Date.now() + 60_000,
  });
  await expect(run(never)).rejects.toThrow('in-progress');
  await redis.hset(record, { until: Date.now() - 1 });
  expect((await run(async (given) => given)).answer).toBe(seed);
});
