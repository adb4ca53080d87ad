/** Waiting until a replica has what was written, and what a client of the API sees when none has. */

import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { NotReplicated, Replication } from 'soundpost-kit/redis/replication';
import { bestMs, msOf } from 'soundpost-testing/best-ms';
import { freePorts } from 'soundpost-testing/ports';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { logger } from '../jobs/queue-fixture.ts';

let master: TestRedis;
let replica: TestRedis;
let redis: Redis;
let replication: Replication;

beforeEach(async () => {
  const [port = 0] = await freePorts(1);
  master = await startTestRedis(['--port', String(port), '--repl-diskless-sync-delay', '0']);
  replica = await startTestRedis(['--replicaof', `127.0.0.1 ${port}`]);
  redis = connectRedis({ url: master.url, role: 'request', logger });
  await until('the replica follows', async () => (await redis.info('replication')).includes('state=online'));
  replication = new Replication({ redis, replicas: 1 });
});
afterEach(async () => {
  process.kill(replica.pid, 'SIGCONT');
  await closeRedis(redis);
  await replica.close();
  await master.close();
});

const KEY = '{soundpost}:something';

/** On a busy machine a replica may take longer than a submission waits for it. */
async function confirmed(): Promise<void> {
  await until('the replica has it', () =>
    replication.confirm([KEY]).then(
      () => true,
      () => false,
    ),
  );
}

describe('what was written', () => {
  it('is confirmed once the replica has it', async () => {
    await redis.set(KEY, '1');
    await confirmed();
  });

  it('is not confirmed when the replica does not answer, in time for an answer within 2 s', async () => {
    await redis.set(KEY, '1');
    process.kill(replica.pid, 'SIGSTOP');
    const refused = () => expect(replication.confirm([KEY])).rejects.toThrow();
    expect(await bestMs(2000, () => msOf(refused))).toBeLessThan(2000);
    // A busy machine may not say so within the deadline of a command.
    await until('it is said why', () =>
      replication.confirm([KEY]).catch((error: unknown) => error instanceof NotReplicated),
    );
    process.kill(replica.pid, 'SIGCONT');
    await confirmed();
  });

  it('is confirmed for many at once by two waits at most', async () => {
    await redis.set(KEY, '1');
    process.kill(replica.pid, 'SIGSTOP');
    const all = await Promise.allSettled(Array.from({ length: 50 }, () => replication.confirm([KEY])));
    expect(all.every(({ status }) => status === 'rejected')).toBe(true);
    expect(/cmdstat_wait:calls=([12]),/.test(await redis.info('commandstats'))).toBe(true);
  });

  it('is not confirmed by a master that never had it, and others are', async () => {
    await redis.set(KEY, '1');
    await confirmed();
    const unknown = await until('the replica has it again', async () => {
      const [known, lost] = await Promise.allSettled([
        replication.confirm([KEY]),
        replication.confirm([KEY, `${KEY}-that-was-lost`]),
      ]);
      return known.status === 'fulfilled' && lost;
    });
    expect(unknown).toMatchObject({
      reason: { name: 'NotReplicated', message: expect.stringContaining('replaced') },
    });
  });

  it('is not confirmed by a replica', async () => {
    const reading = connectRedis({ url: replica.url, role: 'request', logger });
    try {
      await redis.set(KEY, '1');
      await expect(new Replication({ redis: reading, replicas: 1 }).confirm([KEY])).rejects.toThrow();
    } finally {
      await closeRedis(reading);
    }
  });
});
