/**
 * The master of Redis is replaced under load, as Sentinels do it: on purpose, because it died, and because it says nothing any more.
 * The processes go on by themselves, and what was accepted ends: an API submits again what the new master has missed, and where the API dies in the
 * same moment REDIS_WAIT_REPLICAS keeps it. Without both the last submissions are lost, which shows that the others can fail.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it } from 'vitest';
import { Load } from './load.ts';
import { type Accepted, countSetbacks } from './persistent-client.ts';
import { isLong, promised, report, runs } from './runs.ts';
import { SentinelSet } from './sentinel-set.ts';
import { Stand } from './stand.ts';

const ROUNDS = runs(1, 10);
const LONGEST_MS = isLong ? 30 * 60_000 : 120_000;
/** How long the accepted jobs may take to end. */
const AFTERWARDS_MS = 90_000;
/**
 * After so long nobody submits a lost job again: Sentinels may leave the old master a master for 8 s, in which it answers as ever, and the API looks for the
 * last time 20 s after its connection to the new one.
 */
const UNKNOWN_MS = 40_000;
/** Where no API remembers them. */
const LOST_MS = 2000;
/** Of load before the master goes. */
const LOAD_MS = 1500;
const EVERY_MS = 100;
/** How far the replicas are behind a master that dies: more than the time between two submissions. */
const LAG_MS = 300;
/** What a client waits at most while there is no master. */
const SLOWEST_ANSWER_MS = 5000;

let stand: Stand | undefined;
afterEach(() => stand?.close());

async function start(replicas: number): Promise<{ on: Stand; redis: SentinelSet }> {
  let redis: SentinelSet | undefined;
  const on = await Stand.start({
    environment: { REDIS_WAIT_REPLICAS: String(replicas) },
    redis: (folder) => {
      redis = new SentinelSet(folder);
      return redis;
    },
  });
  stand = on;
  if (redis === undefined) throw new Error('the stand made no Redis');
  return { on, redis };
}

/** What was accepted and is not known any more, although there was time to submit it again. */
async function lostOf(on: Stand, accepted: readonly Accepted[], patienceMs: number): Promise<string[]> {
  const endMs = Date.now() + patienceMs;
  const states = accepted.map(async ({ jobId }) => {
    for (;;) {
      const { status } = await on.client.call('GET', `/v1/jobs/${jobId}`);
      if (status === 200) return [];
      // Any other answer says that the API does not know, which may come so shortly after.
      if (status === 404 && Date.now() > endMs) return [jobId];
      await delay(200);
    }
  });
  return (await Promise.all(states)).flat();
}

/** The old master may have answered for a job that the new one gets only when the API submits it again. */
async function completedAtLast(on: Stand, jobId: string): Promise<void> {
  const endMs = Date.now() + UNKNOWN_MS;
  for (;;) {
    try {
      await on.client.completed(jobId, AFTERWARDS_MS);
      return;
    } catch (error) {
      if (!String(error).includes('JOB_NOT_FOUND') || Date.now() > endMs) throw error;
      await delay(200);
    }
  }
}

interface Replacement {
  readonly gone: number | undefined;
  readonly accepted: readonly Accepted[];
  readonly slowestAnswerMs: number;
}

async function underLoad(
  on: Stand,
  name: string,
  replace: () => Promise<number | undefined>,
): Promise<Replacement> {
  const load = new Load(on, EVERY_MS);
  await delay(LOAD_MS);
  const startedMs = Date.now();
  const gone = await replace();
  const replacedSeconds = (Date.now() - startedMs) / 1000;
  await until(
    'the API takes jobs again',
    async () => {
      const answer = await on.trySubmit({}).catch(() => undefined);
      return answer?.status === 202;
    },
    60_000,
  );
  const takesJobsSeconds = (Date.now() - startedMs) / 1000;
  const accepted = await load.stop();
  const slowestAnswerMs = Math.round(Math.max(...accepted.map(({ slowestMs }) => slowestMs)));
  report(name, {
    replacedSeconds,
    takesJobsSeconds,
    accepted: accepted.length,
    slowestAnswerMs,
    setbacks: countSetbacks(accepted),
  });
  return { gone, accepted, slowestAnswerMs };
}

type Replace = (set: SentinelSet) => Promise<number | undefined>;
const purposely: [string, Replace] = [
  'is replaced on purpose',
  async (set) => set.failover().then(() => undefined),
];
const others: [string, Replace][] = [
  ['is killed', (set) => set.killMaster()],
  ['says nothing any more', (set) => set.stopMaster()],
];

it.each(isLong ? [purposely, ...others] : [purposely])(
  'the master %s: nothing that was accepted is lost',
  async (name, replace) => {
    const { on, redis } = await start(0);
    for (let round = 1; round <= ROUNDS; round++) {
      const replaced = await underLoad(on, `Redis' master ${name}`, () => replace(redis));
      const { gone, accepted, slowestAnswerMs } = replaced;
      promised(slowestAnswerMs, SLOWEST_ANSWER_MS);
      expect(await lostOf(on, accepted, UNKNOWN_MS)).toEqual([]);
      await Promise.all(accepted.map(({ jobId }) => completedAtLast(on, jobId)));
      if (round === ROUNDS) break;
      if (gone === undefined) await redis.ready();
      else await redis.bringBack(gone);
    }
  },
  LONGEST_MS,
);

const withReplica = [1, 'nothing that was accepted is lost'] as const;
const withoutReplica = [0, 'the last submissions are lost'] as const;

it.each(isLong ? [withoutReplica, withReplica] : [withReplica])(
  'the master and the API are killed in one moment, with REDIS_WAIT_REPLICAS=%i: %s',
  async (replicas) => {
    const { on, redis } = await start(replicas);
    let accepted = 0;
    let lost = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      await redis.slowReplicas(LAG_MS);
      const name = `Redis' master and the API are killed, REDIS_WAIT_REPLICAS=${replicas}`;
      // Asked for beforehand: while it were looked for, the replicas would come up with it.
      const master = await redis.master();
      const replaced = await underLoad(on, name, async () => {
        const { length } = on.accepted;
        // One that no replica can have yet, unless the API has waited for it.
        await until('a job has just been accepted', () => on.accepted.length > length);
        const [gone] = await Promise.all([redis.killMaster(master), on.api.kill()]);
        return gone;
      });
      accepted += replaced.accepted.length;
      lost += (await lostOf(on, replaced.accepted, LOST_MS)).length;
      if (round < ROUNDS && replaced.gone !== undefined) await redis.bringBack(replaced.gone);
    }
    report(`lost with REDIS_WAIT_REPLICAS=${replicas}`, { rounds: ROUNDS, lagMs: LAG_MS, accepted, lost });
    if (replicas === 0) expect(lost).toBeGreaterThan(0);
    else expect(lost).toBe(0);
  },
  LONGEST_MS,
);
