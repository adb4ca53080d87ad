import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describeStorage } from 'soundpost-testing/storage-suite';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { withDeadline } from '../../src/storage/deadline.ts';
import { createFileStorage } from '../../src/storage/file-storage.ts';
import type { Storage } from '../../src/storage/storage.ts';

async function filesBelow(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

describeStorage('a folder as storage, with a deadline as the service sets it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'storage-'));
  const root = join(folder, 'files');
  await mkdir(root);
  return {
    storage: withDeadline(createFileStorage({ root }), 60_000),
    keys: () => filesBelow(root),
    close: () => rm(folder, { recursive: true }),
  };
});

let folder: string;
let root: string;
let storage: Storage;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'storage-'));
  root = join(folder, 'data/files');
  storage = createFileStorage({ root });
});
afterEach(() => rm(folder, { recursive: true }));

const put = (key: string) => storage.write(key, Readable.from(['x']));

test('the folder is made on the first write or ping', async () => {
  await storage.ping();
  expect((await stat(root)).mode & 0o777).toBe(0o700);
  await rm(root, { recursive: true });
  await put('a');
  expect(await filesBelow(root)).toEqual(['a']);
});

test('files and folders are for their owner only, whatever they were before', async () => {
  const local = join(folder, 'result');
  await writeFile(local, 'x');
  await chmod(local, 0o666);
  await storage.publish(local, 'published/file');
  await put('written/file');
  for (const file of ['published/file', 'written/file']) {
    expect((await stat(join(root, file))).mode & 0o777).toBe(0o600);
  }
  for (const directory of ['', 'published', 'written']) {
    expect((await stat(join(root, directory))).mode & 0o777).toBe(0o700);
  }
});

test('a file on the same volume is moved, not copied', async () => {
  const local = join(folder, 'result');
  await writeFile(local, 'x');
  const { ino } = await stat(local);
  await storage.publish(local, 'a');
  expect((await stat(join(root, 'a'))).ino).toBe(ino);
  await expect(stat(local)).rejects.toMatchObject({ code: 'ENOENT' });
});

/** /dev/shm is a volume of its own on every Linux; one of the others lies elsewhere. */
test('a file on another volume is copied whole and then taken away', async () => {
  const memory = await mkdtemp('/dev/shm/storage-');
  onTestFinished(() => rm(memory, { recursive: true }));
  expect((await stat(memory)).dev).not.toBe((await stat(folder)).dev);
  const content = randomBytes(3_000_000);
  const local = join(memory, 'result');
  await writeFile(local, content, { mode: 0o666 });
  expect(await storage.publish(local, 'a')).toEqual({ key: 'a', sizeBytes: content.length });
  expect((await buffer(await storage.read('a'))).equals(content)).toBe(true);
  expect((await stat(join(root, 'a'))).mode & 0o777).toBe(0o600);
  expect(await readdir(memory)).toEqual([]);
});

test('the local path of an object is the object itself', async () => {
  await put('a/b.ogg');
  expect(await storage.localCopy('a/b.ogg', folder)).toBe(join(root, 'a/b.ogg'));
});

test('folders go with their last object', async () => {
  await put('files/job/one');
  await put('files/job/two');
  await storage.remove('files/job/one');
  expect(await readdir(join(root, 'files'))).toEqual(['job']);
  await storage.remove('files/job/two');
  expect(await readdir(root)).not.toContain('files');
});

test('what a crash left unfinished is cleared away a day later, what is being written is not', async () => {
  const unfinished = join(root, '.unfinished');
  await mkdir(unfinished, { recursive: true });
  await writeFile(join(unfinished, 'old'), 'x');
  await writeFile(join(unfinished, 'young'), 'x');
  const dayBeforeYesterday = new Date(Date.now() - 48 * 3_600_000);
  await utimes(join(unfinished, 'old'), dayBeforeYesterday, dayBeforeYesterday);
  await put('a');
  expect(await readdir(unfinished)).toEqual(['young']);
});

test('a ping fails when the folder cannot be one', async () => {
  await mkdir(join(folder, 'data'));
  await writeFile(root, 'a file');
  await expect(storage.ping()).rejects.toThrow();
});

/** A limit on the size of files stands for a full disk: both stop a write in the middle, and this one needs no rights. */
test('a write that the system stops in the middle passes on its error and leaves nothing', async () => {
  const program = `
    import { Readable } from 'node:stream';
    import { createFileStorage } from ${JSON.stringify(new URL('../../src/storage/file-storage.ts', import.meta.url))};
    process.on('SIGXFSZ', () => {});
    const storage = createFileStorage({ root: ${JSON.stringify(root)} });
    const content = Readable.from(Array(100).fill(Buffer.alloc(10_000)));
    await storage.write('a/large', content).then(() => console.log('written'), (error) => console.log(error.code));
  `;
  const node = `exec "$0" --input-type=module-typescript --eval "$1"`;
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    `ulimit -f 200; ${node}`,
    process.execPath,
    program,
  ]);
  expect(stdout.trim()).toBe('EFBIG');
  expect(await filesBelow(root)).toEqual([]);
});
