/** What is stored at all, and what of it no record names: the same for a folder and a bucket. */
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { bucketOptions } from 'soundpost-testing/s3/s3-fixture';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileInventory, type Inventory, type Shelf, unnamedObjects } from '../../src/storage/inventory.ts';
import { bucketInventory, S3Bucket } from '../../src/storage/s3-bucket.ts';

const KEYS = [
  'files/job_known/a.mp3',
  'files/job_lost/a.mp3',
  'files/job_lost/b.mp3',
  'uploads/.incoming/upl_lost',
  'uploads/upl_known',
  'uploads/upl_lost',
];
const shelf = (folder: string): Shelf => ({
  folder,
  areKnown: async (names) => names.map((name) => !name.endsWith('_lost')),
  keepSeconds: 60,
});

async function unnamed(inventory: Inventory, folder: string) {
  const found = [];
  for await (const object of unnamedObjects(inventory, shelf(folder))) found.push(object);
  return found.sort((one, other) => one.key.localeCompare(other.key));
}

let folder = '';
let s3: S3Server;
let bucket: S3Bucket;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-inventory-'));
  s3 = await S3Server.start();
  bucket = new S3Bucket({ ...bucketOptions(s3), prefix: 'ours/' });
  for (const key of KEYS) {
    await mkdir(join(folder, dirname(key)), { recursive: true });
    await writeFile(join(folder, key), 'sound');
    await s3.put(`ours/${key}`, 'sound');
    await s3.put(`theirs/${key}`, 'sound');
  }
});
afterAll(async () => {
  bucket.close();
  await s3.close();
  await rm(folder, { recursive: true });
});

describe.each([
  ['a folder', () => fileInventory(folder)],
  ['a bucket', () => bucketInventory(bucket)],
])('in %s', (_where, open) => {
  test('what no record names is found, with its size and until when it is kept', async () => {
    const found = await unnamed(open(), 'files/');
    expect(found.map(({ key, sizeBytes }) => [key, sizeBytes])).toEqual([
      ['files/job_lost/a.mp3', 5],
      ['files/job_lost/b.mp3', 5],
    ]);
    expect(found[0]?.untilMs).toBe((found[0]?.writtenAtMs ?? 0) + 60_000);
    expect((await unnamed(open(), 'uploads/')).map(({ key }) => key)).toEqual(['uploads/upl_lost']);
    expect((await unnamed(open(), 'uploads/.incoming/')).map(({ key }) => key)).toEqual([
      'uploads/.incoming/upl_lost',
    ]);
    expect(await unnamed(open(), 'media/')).toEqual([]);
  });

  test('it goes, and nothing beside it', async () => {
    const inventory = open();
    for (const place of ['files/', 'uploads/', 'uploads/.incoming/']) {
      for (const { key } of await unnamed(inventory, place)) await inventory.remove(key);
      expect(await unnamed(inventory, place)).toEqual([]);
    }
    await inventory.remove('files/job_lost/a.mp3');
  });
});

test('a job’s folder goes with its last file, that of arriving uploads stays', async () => {
  expect(await readdir(join(folder, 'files'))).toEqual(['job_known']);
  expect((await readdir(join(folder, 'uploads'))).sort()).toEqual(['.incoming', 'upl_known']);
  expect(s3.contents().filter((key) => key.startsWith('ours/'))).toEqual([
    'ours/files/job_known/a.mp3',
    'ours/uploads/upl_known',
  ]);
  expect(s3.contents().filter((key) => key.startsWith('theirs/'))).toHaveLength(KEYS.length);
  const old = new Date(1_000_000);
  await utimes(join(folder, 'uploads/upl_known'), old, old);
  for await (const { objects } of fileInventory(folder).list('uploads/')) {
    expect(objects).toEqual([{ key: 'uploads/upl_known', sizeBytes: 5, writtenAtMs: 1_000_000 }]);
  }
});
