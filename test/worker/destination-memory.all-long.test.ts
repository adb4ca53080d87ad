/** Decisions A8: a put takes the same memory whatever the size: of 1 GiB, with --long of 5 GiB. The file is one of holes. */
import { execFile } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BucketServer, serveBucket } from 'soundpost-testing/bucket';
import { byRun } from 'soundpost-testing/by-run';
import { afterAll, beforeAll, expect, it } from 'vitest';

const MIB = 1024 ** 2;
const WARM_UP_BYTES = 64 * MIB;
const SIZE_BYTES = byRun({ all: 1024 * MIB, long: 5 * 1024 * MIB });
const LIMIT_BYTES = 32 * MIB;
const TIMEOUT_MS = 600_000;

let folder = '';
let store: BucketServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-put-'));
  store = await serveBucket();
  for (const size of [WARM_UP_BYTES, SIZE_BYTES]) {
    await using file = await open(join(folder, String(size)), 'w');
    await file.truncate(size);
  }
});
afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

it(
  `${SIZE_BYTES / MIB} MiB are put in less than ${LIMIT_BYTES / MIB} MiB more memory than ${WARM_UP_BYTES / MIB} MiB`,
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--max-semi-space-size=4',
      join(import.meta.dirname, 'put-child.ts'),
      ...[folder, `${store.url}/large.mp3?signature=abc`, String(WARM_UP_BYTES), String(SIZE_BYTES)],
    ]);
    const { statuses, grownBytes } = JSON.parse(stdout);
    expect(statuses).toEqual(['completed']);
    expect(store.bucket.objects.get('/large.mp3')?.sizeBytes).toBe(SIZE_BYTES);
    expect(grownBytes).toBeLessThan(LIMIT_BYTES);
  },
  TIMEOUT_MS,
);
