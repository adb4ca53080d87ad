/** More transfers than a bucket's connections. In `all`: it outlasts the time in which a connection has to stand. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { storageOnS3 } from 'soundpost-testing/s3/s3-fixture';
import { until } from 'soundpost-testing/until';
import { expect, onTestFinished, test } from 'vitest';
import { inTime } from '../../src/storage/deadline.ts';
import { createS3Storage } from '../../src/storage/s3-storage.ts';

test('more writes than there are connections wait their turn, and keep nobody from asking', async () => {
  const { bucket, server, close } = await storageOnS3({ connectMs: 5000, tries: 1 });
  onTestFinished(close);
  const crowded = createS3Storage(bucket, { largestWriteBytes: 1 });
  const { promise: later, resolve: release } = Promise.withResolvers<void>();
  server.fault = ({ method }) => (method === 'PUT' ? { kind: 'late', until: later } : undefined);
  const writing = Array.from({ length: 70 }, (_, at) => crowded.write(`object-${at}`, Readable.from(['x'])));
  const written = Promise.all(writing);
  written.catch(() => undefined);
  await until('all connections are taken', () => server.requests.length === 64);
  // Longer than a connection may take to come about.
  await sleep(6000);
  // Who had to wait for the writes would wait until they are released.
  await inTime('ping', 20_000, crowded.ping());
  expect(await inTime('stat', 20_000, crowded.stat('object-69'))).toBeUndefined();
  release();
  expect(await written).toHaveLength(70);
});
