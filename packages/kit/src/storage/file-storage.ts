/** Objects as files below one folder. A rename publishes each, so no reader sees half of one. */
import { randomUUID } from 'node:crypto';
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { access, copyFile, lstat, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ByteRange, checkedKey, ObjectNotFound, type Storage, type StoredObject } from './storage.ts';

interface FileStorageOptions {
  /** Path of the folder; created with mode 0700 on the first write. */
  readonly root: string;
}

/** Unfinished objects, on the root's volume so that a rename works. No key begins with a dot. */
const UNFINISHED = '.unfinished';
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1_000;

export function createFileStorage(options: FileStorageOptions): Storage {
  const root = resolve(options.root);
  const unfinishedFolder = join(root, UNFINISHED);
  let swept: Promise<void> | undefined;
  const pathOf = (key: string) => join(root, checkedKey(key));

  /** `fill` makes a temporary file, which then gets its key; removed on failure. */
  const place = async (key: string, fill: (path: string) => Promise<unknown>): Promise<StoredObject> => {
    const path = pathOf(key);
    const unfinished = join(unfinishedFolder, randomUUID());
    await mkdir(unfinishedFolder, { recursive: true, mode: 0o700 });
    swept ??= sweep(unfinishedFolder).catch((error: unknown) => {
      swept = undefined;
      throw error;
    });
    await swept;
    try {
      await fill(unfinished);
      const sizeBytes = await settle(unfinished);
      await renameInto(unfinished, path);
      return { key, sizeBytes };
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
  };

  return {
    async publish(localPath, key) {
      const object = await place(key, (unfinished) => moveOrCopy(localPath, unfinished));
      await rm(localPath, { force: true });
      return object;
    },

    write: (key, content) =>
      place(key, (unfinished) =>
        pipeline(content, createWriteStream(unfinished, { flags: 'wx', mode: 0o600 })),
      ),

    async stat(key) {
      const sizeBytes = await sizeOf(pathOf(key));
      return sizeBytes === undefined ? undefined : { key, sizeBytes };
    },

    async read(key, range) {
      return openForReading(key, pathOf(key), range);
    },

    async localCopy(key) {
      const path = pathOf(key);
      if ((await sizeOf(path)) === undefined) throw new ObjectNotFound(key);
      return path;
    },

    async remove(key) {
      const path = pathOf(key);
      await rm(path, { force: true });
      await removeEmptyFolders(dirname(path), root);
    },

    async ping() {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await access(root, constants.R_OK | constants.W_OK | constants.X_OK);
    },
  };
}

/** Removes files left by a crash. A stream that still arrives keeps its file young. */
async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() })); // It was finished.
    if (mtimeMs < Date.now() - ABANDONED_AFTER_MS) await rm(path, { force: true });
  }
}

/** Flushes the finished file, so that a power cut after the rename cannot leave an empty object. */
async function settle(path: string): Promise<number> {
  const file = await open(path, 'r+');
  try {
    await file.chmod(0o600);
    await file.sync();
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** Makes the rename survive a power cut. If the folder is gone, the object was removed. */
async function sync(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/** A concurrent removal may delete the empty folder before the rename, so retry. */
async function renameInto(from: string, to: string, attempts = 50): Promise<void> {
  const folder = dirname(to);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await rename(from, to);
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || attempts === 1) throw error;
    return renameInto(from, to, attempts - 1);
  }
  await sync(folder);
}

/** Renames if possible; copies from another volume (EXDEV). */
async function moveOrCopy(from: string, to: string): Promise<void> {
  if (!(await lstat(from)).isFile()) throw new Error('only a regular file can be published');
  try {
    await rename(from, to);
  } catch (error) {
    if (!hasCode(error, 'EXDEV')) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
  }
}

async function removeEmptyFolders(folder: string, root: string): Promise<void> {
  for (let current = folder; current !== root; current = dirname(current)) {
    try {
      await rmdir(current);
    } catch {
      return; // In use by another object, or gone already.
    }
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const found = await stat(path);
    return found.isFile() ? found.size : undefined;
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Opens before it returns: a missing object fails now, and a later removal changes nothing. */
async function openForReading(key: string, path: string, range: ByteRange | undefined): Promise<Readable> {
  if ((await sizeOf(path)) === undefined) throw new ObjectNotFound(key);
  const file = await open(path, 'r').catch((error: unknown) => {
    throw hasCode(error, 'ENOENT') ? new ObjectNotFound(key) : error;
  });
  return createReadStream(path, {
    fd: file,
    start: range?.start ?? 0,
    end: range?.end ?? Number.POSITIVE_INFINITY,
  });
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
