/** Pieces go to their places at once, and through other threads once the disk makes its writers wait. */
import fs from 'node:fs';
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { PieceWriter } from '../src/ranges-session.ts';

/** How the disk answers to writes that this thread makes itself. */
const disk = { writes: 0, waitMs: 0, mostBytes: Number.POSITIVE_INFINITY };
const { writeSync } = fs;

beforeAll(() => {
  const write = (fd: number, bytes: Uint8Array, from: number, length: number, position: number): number => {
    disk.writes += 1;
    if (disk.waitMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, disk.waitMs);
    return writeSync(fd, bytes, from, Math.min(length, disk.mostBytes), position);
  };
  vi.spyOn(fs, 'writeSync').mockImplementation(write as typeof writeSync);
  syncBuiltinESMExports();
});
afterAll(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

let folder: string;
let path: string;
let file: FileHandle;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-pieces-'));
  path = join(folder, 'file');
  file = await open(path, 'w');
  Object.assign(disk, { writes: 0, waitMs: 0, mostBytes: Number.POSITIVE_INFINITY });
});
afterEach(async () => {
  await file.close();
  await rm(folder, { recursive: true });
});

const piece = (start: number, text: string) => ({ start, bytes: Buffer.from(text) });

it('each piece is where it belongs, and holes between them are empty', async () => {
  await new PieceWriter(file).write([piece(6, 'late'), piece(0, 'early')]);
  expect(await readFile(path, 'latin1')).toBe('early\0late');
});

it('a write that takes fewer bytes than it was given goes on with the rest', async () => {
  disk.mostBytes = 2;
  await new PieceWriter(file).write([piece(1, 'abcde')]);
  expect(await readFile(path, 'latin1')).toBe('\0abcde');
  expect(disk.writes).toBe(3);
});

it('a disk that made this thread wait gets what follows from other threads', async () => {
  const writer = new PieceWriter(file);
  disk.waitMs = 30;
  await writer.write([piece(0, 'slow')]);
  await writer.write([piece(4, 'then'), piece(8, 'more')]);
  expect(await readFile(path, 'latin1')).toBe('slowthenmore');
  expect(disk.writes).toBe(1);
});

it('what the file system fails with is told', async () => {
  const unwritable = await open(path, 'r');
  await expect(new PieceWriter(unwritable).write([piece(0, 'x')])).rejects.toMatchObject({ code: 'EBADF' });
  await unwritable.close();
});
