/** A process that was too busy to read what Redis has answered in time. */
import { execFileSync } from 'node:child_process';
import { setImmediate } from 'node:timers/promises';
import { createLogger } from 'soundpost-kit/observe/logger';
import { REQUEST_DEADLINE_MS } from 'soundpost-kit/redis/clients';
import { closeRedis, connectRedis } from 'soundpost-kit/redis/connection';
import { expect, it } from 'vitest';
import { newJobId, payloadOf, TENANT, useQueue } from '../jobs/queue-fixture.ts';

const queue = useQueue();

/** Nothing of this thread runs meanwhile. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REQUEST_DEADLINE_MS + 200);
}

// Broken by hand (packages/base/src/deadline.ts): without the setImmediate and in one step the deadline is over before the answer is looked at.
it('gets the answer all the same', async () => {
  const { redis } = queue();
  await redis.set('asked', 'answered');
  const asked = redis.get('asked');
  // By then it is written.
  await setImmediate();
  standStill();
  // Whoever asks later is answered later: the first answer lies in the kernel now.
  execFileSync('redis-cli', ['-s', queue().server.socketPath, 'PING']);
  expect(await asked).toBe('answered');
});

// Broken by hand (packages/base/src/deadline.ts): with one step the deadline is over before the connection is made.
it('gets the answer to what it asked for while it connected', async () => {
  const redis = connectRedis({ url: queue().server.url, role: 'request', logger: createLogger('silent') });
  const asked = redis.ping();
  standStill();
  expect(await asked).toBe('PONG');
  await closeRedis(redis);
});

// Broken by hand (packages/base/src/deadline.ts): with one step it is answered 503.
it('submits a job all the same', async () => {
  const submitted = queue().jobs.submit(TENANT, [{ jobId: newJobId(), payload: payloadOf(TENANT) }]);
  await setImmediate();
  standStill();
  expect(await submitted).toMatchObject({ outcome: 'reserved' });
});
