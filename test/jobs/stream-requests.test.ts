/** What playlists and manifests may cause at other servers: for a job, and for a key at a host. */
import { ownKey } from 'soundpost-kit/redis/keys';
import { expect, it } from 'vitest';
import { leaseOf, StreamRequests, streamRequestsLeft } from '../../src/jobs/stream-requests.ts';
import { JumpClock, mostWithin } from './jump-clock.ts';
import { newJobId, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();
const signal = new AbortController().signal;
const ofSegment = (hostname = 'cdn.example') => ({ hostname, isSegment: true, isRedirect: false, signal });
const ofHeader = { ...ofSegment(), isSegment: false };
const redirected = { ...ofSegment(), isRedirect: true };
const host = { tenant: TENANT, host: 'cdn.example' };

/** On a clock that jumps, with how often the process asked for a lease. */
function requests() {
  const clock = new JumpClock();
  let leases = 0;
  const lease: typeof clock.lease = (request) => {
    leases += 1;
    return clock.lease(request);
  };
  return {
    clock,
    requests: new StreamRequests({ redis: queue().redis, clock, lease }),
    leases: () => leases,
  };
}

it.each([
  { ms: 150, atOnce: 6, perSecond: 36 },
  { ms: 400, atOnce: 8, perSecond: 19 },
])(
  'of requests of $ms ms of three jobs at a host $atOnce run at a time, few leases',
  async ({ ms, atOnce, perSecond }) => {
    const { clock, requests: all, leases } = requests();
    const begunMs: number[] = [];
    let running = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 3 }, async () => {
        const admit = all.of(TENANT, newJobId());
        const one = async (): Promise<void> => {
          const leave = await admit(ofSegment());
          begunMs.push(clock.nowMs());
          running += 1;
          most = Math.max(most, running);
          await clock.sleep(ms);
          running -= 1;
          leave();
        };
        await Promise.all(Array.from({ length: 100 }, one));
      }),
    );
    expect(begunMs).toHaveLength(300);
    expect(most).toBe(atOnce);
    expect(mostWithin(begunMs, 1_000)).toBeLessThanOrEqual(40);
    // And a good link is not held up.
    expect(Math.max(...begunMs)).toBeLessThan((300 / perSecond) * 1_000);
    expect(leases()).toBeLessThan(300 / 4);
  },
);

it('many names for one server make a job no faster', async () => {
  const { clock, requests: all } = requests();
  const admit = all.of(TENANT, newJobId());
  const begunMs: number[] = [];
  const one = async (_: unknown, nth: number): Promise<void> => {
    const leave = await admit(ofSegment(`${nth}.example`));
    begunMs.push(clock.nowMs());
    leave();
  };
  await Promise.all(Array.from({ length: 100 }, one));
  expect(mostWithin(begunMs, 1_000)).toBeLessThanOrEqual(40);
});

it.each([
  ['requests beside the segments', ofHeader, 2_000, /more than 2000 requests beside its segments/],
  ['redirects', redirected, 512, /redirect more than 512 times/],
])('%s of all attempts at a job together have a limit', async (_what, request, limit, details) => {
  const jobId = newJobId();
  let admitted = 0;
  const attempt = async (wanted: number): Promise<void> => {
    const admit = requests().requests.of(TENANT, jobId);
    for (let nth = 0; nth < wanted; nth += 1) {
      (await admit(request))();
      admitted += 1;
    }
  };
  await attempt(limit / 2);
  await expect(attempt(limit)).rejects.toMatchObject({
    code: 'DOWNLOAD_FAILED',
    details: expect.stringMatching(details),
  });
  expect(admitted).toBe(limit);
  await requests().requests.of(TENANT, newJobId())(request);
});

it('segments have no other limit than their number', async () => {
  const admit = requests().requests.of(TENANT, newJobId());
  for (let nth = 0; nth < 2_500; nth += 1) (await admit(ofSegment()))();
});

it('a request that is no longer wanted leaves its place to others', async () => {
  const { requests: all } = requests();
  const admit = all.of(TENANT, newJobId());
  const leaves = await Promise.all(Array.from({ length: 8 }, () => admit(ofSegment())));
  const gone = new AbortController();
  const unwanted = admit({ ...ofSegment(), signal: gone.signal });
  const next = admit(ofSegment());
  gone.abort(new Error('gone'));
  await expect(unwanted).rejects.toThrow('gone');
  leaves[0]?.();
  (await next)();
});

it('workers share the places and the time of a host, and no key those of another', async () => {
  const { redis } = queue();
  const [one, other] = [leaseOf(redis), leaseOf(redis)];
  const beginsMs = 10_000;
  expect(await one({ ...host, busy: 0, wanted: 8, beginsMs })).toEqual({ places: 8, waitMs: 0 });
  // All places are taken: no time is given without one.
  expect(await other({ ...host, busy: 0, wanted: 3, beginsMs })).toMatchObject({ places: 0 });
  expect(await one({ ...host, busy: 6, wanted: 8, beginsMs: 0 })).toMatchObject({ places: 6 });
  const second = await other({ ...host, busy: 0, wanted: 3, beginsMs });
  expect(second.places).toBe(2);
  expect(second.waitMs).toBeGreaterThan(0);
  expect(second.waitMs).toBeLessThanOrEqual(beginsMs);
  expect((await streamRequestsLeft(redis, TENANT)).hosts).toEqual([{ host: 'cdn.example', atOnceLeft: 0 }]);
  expect(await one({ ...host, tenant: 'tenant02', busy: 0, wanted: 8, beginsMs })).toEqual({
    places: 8,
    waitMs: 0,
  });
  await one({ ...host, busy: 0, wanted: 0, beginsMs: 0 });
  expect((await streamRequestsLeft(redis, TENANT)).hosts).toEqual([{ host: 'cdn.example', atOnceLeft: 6 }]);
  expect(await other({ ...host, busy: 2, wanted: 8, beginsMs: 0 })).toMatchObject({ places: 8 });
});

it('places of a worker that has died are free again', async () => {
  const { redis } = queue();
  const lease = ownKey('stream-requests', TENANT, 'cdn.example');
  await leaseOf(redis, 'dead')({ ...host, busy: 0, wanted: 8, beginsMs: 0 });
  expect(await redis.pttl(lease)).toBeGreaterThan(0);
  await redis.hset(lease, 'dead', '8 1');
  expect(await leaseOf(redis)({ ...host, busy: 0, wanted: 8, beginsMs: 0 })).toMatchObject({ places: 8 });
  expect(await redis.hexists(lease, 'dead')).toBe(0);
});
