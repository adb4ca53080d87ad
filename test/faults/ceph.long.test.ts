/**
 * Faults while results lie in Ceph: its gateway and its disk freeze, its gateway dies, and workers and the API die while they write. Every job is completed, once,
 * and its bytes are those that its sha256 tells.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { unless } from 'soundpost-testing/needs';
import { Ceph, cephRoot } from 'soundpost-testing/s3/ceph';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { violations } from './invariants.ts';
import { Load } from './load.ts';
import { randomFrom, report, seed } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

const ROUNDS = 12;
const EVERY_MS = 500;
const LONGEST_MS = 5000;
const WAITING = 500;
const AWAY_MS = 300_000;

const found = cephRoot();

const seeded = seed();
const random = randomFrom(seeded);

describe('Ceph', unless('missing' in found ? `there is no Ceph here: ${found.missing}` : undefined), () => {
  let ceph: Ceph;
  let stand: Stand;
  beforeAll(async () => {
    process.stdout.write(`FAULTS_SEED=${seeded}\n`);
    ceph = await Ceph.start('root' in found ? found.root : '');
    stand = await Stand.start({
      workers: 2,
      environment: { ...LONG_LOCKS, ...ceph.environment(), RATE_SUBMIT_PER_MINUTE: '10000' },
    });
    await stand.warmUp();
  });
  afterAll(async () => {
    await stand.close();
    await ceph.close();
  });

  const faults: Readonly<Record<string, (ms: number) => Promise<unknown>>> = {
    'gateway frozen': (ms) => ceph.freeze('radosgw', ms),
    'disk frozen': (ms) => ceph.freeze('ceph-osd', ms),
    'gateway killed': (ms) => ceph.killGateway(ms),
    'worker killed': () => Promise.resolve(stand.workers[0]?.kill()),
    'API killed': () => stand.api.kill(),
  };

  it('every job is completed, whatever freezes or dies', {
    timeout: 120_000 + ROUNDS * 120_000,
  }, async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const load = new Load(stand, EVERY_MS);
      for (const fault of Object.values(faults)) {
        await delay(1000 + 1000 * random());
        await fault(1000 + (LONGEST_MS - 1000) * random());
        await Promise.all(stand.processes.map((one) => one.ready()));
      }
      await load.stop();
      expect(await violations(stand, { restMs: 120_000 })).toEqual([]);
    }
    const failed = stand.accepted.filter(
      ({ jobId }) => stand.observer.of(jobId).last?.status !== 'completed',
    );
    report('Faults over Ceph', {
      seed: seeded,
      faults: ROUNDS * Object.keys(faults).length,
      jobs: stand.accepted.length,
      failed: failed.length,
    });
    expect(failed).toEqual([]);
  });

  it(`away for ${AWAY_MS / 1000} s it costs none of ${WAITING} jobs that wait`, {
    timeout: AWAY_MS + 1_800_000,
  }, async () => {
    const jobIds = await Promise.all(Array.from({ length: WAITING }, () => stand.submit()));
    await ceph.killGateway(AWAY_MS);
    await stand.observer.atRest(jobIds, 1_200_000);
    const completed = jobIds.filter((jobId) => stand.observer.of(jobId).last?.status === 'completed');
    report('Ceph away', { awaySeconds: AWAY_MS / 1000, jobs: WAITING, failed: WAITING - completed.length });
    expect(completed).toEqual(jobIds);
  });
});
