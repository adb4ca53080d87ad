/** What is known of a storage that goes away, and who waits for it. The storage is a real one; what it answers is held or refused before it. */
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { type StorageOnS3, storageOnS3 } from 'soundpost-testing/s3/s3-fixture';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.ts';
import { Probes } from '../../src/observe/probes.ts';
import { watchedInTime, withDeadline } from '../../src/storage/deadline.ts';
import { StorageWatch } from '../../src/storage/storage-watch.ts';

const signal = new AbortController().signal;
let on: StorageOnS3;
let watch: StorageWatch;
let probes: Probes;

async function watched(deadlineMs: number): Promise<void> {
  on = await storageOnS3({ tries: 1 });
  probes = new Probes(createLogger('silent'));
  watch = new StorageWatch({ storage: on.storage, deadlineMs, probes });
  await watch.look();
}
afterEach(async () => {
  await probes.close('storage');
  await on.close();
});

test('a request that fails shows that it is away; then nothing is asked, until it is back', async () => {
  await watched(10_000);
  const storage = withDeadline(on.storage, 10_000, watch);
  on.server.fault = () => ({ kind: 'cut' });
  await expect(storage.stat('a')).rejects.toMatchObject({ code: 'ECONNRESET' });
  await until('it is known to be away', () => probes.state('storage') === 'down');
  await expect(storage.stat('b')).rejects.toThrow('known to be away');
  await expect(watchedInTime(10_000, watch)('create', new Promise(() => undefined))).rejects.toThrow('away');
  expect(on.server.requests.map(({ key }) => key)).not.toContain('some/prefix/b');
  on.server.fault = () => undefined;
  await until('it is back', () => probes.state('storage') === 'up');
  expect(await storage.stat('b')).toBeUndefined();
});

test('one that hangs is away after its deadline, and asked once at a time', async () => {
  await watched(300);
  let pings = 0;
  on.server.fault = () => {
    pings += 1;
    return { kind: 'hang' };
  };
  expect(await Promise.all([watch.look(), watch.look()])).toEqual([false, false]);
  expect(pings).toBe(1);
  on.server.fault = () => undefined;
  await until('it is back', () => probes.state('storage') === 'up');
});

test('one that is slow is not away', async () => {
  await watched(10_000);
  // From when it was asked.
  on.server.fault = () => ({ kind: 'late', until: delay(1200) });
  expect(await watch.look()).toBe(true);
  expect(probes.state('storage')).toBe('slow');
  expect(Object.fromEntries(probes.figures()).soundpost_storage_answer_seconds).toBeGreaterThan(1);
  watch.demandUp();
});

test('work waits while it is away, and is done again', async () => {
  await watched(10_000);
  on.server.fault = () => ({ kind: 'cut' });
  let tries = 0;
  const work = watch.retryUntilUp(signal, () => {
    tries += 1;
    return on.storage.stat('a');
  });
  await until('it is known to be away', () => probes.state('storage') === 'down');
  expect(tries).toBe(1);
  on.server.fault = () => undefined;
  expect(await work).toBeUndefined();
  expect(tries).toBe(2);
});

test('work is not done again for ever while the storage answers', async () => {
  await watched(10_000);
  on.server.fault = ({ key }) => (key === '' ? undefined : { kind: 'cut' });
  await expect(watch.retryUntilUp(signal, () => on.storage.stat('a'))).rejects.toMatchObject({
    code: 'ECONNRESET',
  });
  expect(on.server.requests.filter(({ key }) => key !== '')).toHaveLength(3);
  const failure = new Error('of the work itself');
  let tries = 0;
  const work = watch.retryUntilUp(signal, async () => {
    tries += 1;
    throw failure;
  });
  await expect(work).rejects.toBe(failure);
  expect(tries).toBe(1);
});

test('who gives up does not wait', async () => {
  await watched(10_000);
  on.server.fault = () => ({ kind: 'cut' });
  const cancelled = new AbortController();
  const work = watch.retryUntilUp(cancelled.signal, () => on.storage.stat('a'));
  await until('it is known to be away', () => probes.state('storage') === 'down');
  cancelled.abort(new Error('cancelled'));
  await expect(work).rejects.toThrow();
});

test('listeners are told of changes alone', async () => {
  await watched(10_000);
  const told: string[] = [];
  probes.on('changed', () => told.push(probes.state('storage')));
  await watch.look();
  on.server.fault = () => ({ kind: 'cut' });
  await watch.look();
  await watch.look();
  on.server.fault = () => undefined;
  await until('it is back', () => probes.state('storage') === 'up');
  await turn();
  expect(told).toEqual(['down', 'up']);
});
