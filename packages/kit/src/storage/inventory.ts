/** What is stored at all, to find what no record names. Only for the janitor and the doctor. */
import type { Dirent } from 'node:fs';
import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { StoredObject } from './storage.ts';

interface ListedObject extends StoredObject {
  /** By the clock of the storage, ms since 1970. */
  readonly writtenAtMs: number;
}

/** What is directly in a folder, or a part of it. */
interface Listed {
  /** Full names that end with a slash, such as `files/job_0123456789abcdef/`. */
  readonly folders: readonly string[];
  readonly objects: readonly ListedObject[];
}

export interface Inventory {
  /** Page by page; nothing if there is no such folder. @param folder ends with a slash */
  list(folder: string): AsyncIterable<Listed>;
  /** Removes a listed object; no error if it is gone. */
  remove(key: string): Promise<void>;
}

/** Objects that belong to one record. */
export interface Shelf {
  /** Ends with a slash. */
  readonly folder: string;
  /** For names directly in the folder, without a slash at the end: whether a record has it. */
  areKnown(names: readonly string[]): Promise<readonly boolean[]>;
  /** How long an object without a record is kept. */
  readonly keepSeconds: number;
}

export interface Unnamed extends ListedObject {
  /** Until when it is kept. */
  readonly untilMs: number;
}

/** Objects of the shelf that no record names, of any age. */
export async function* unnamedObjects(inventory: Inventory, shelf: Shelf): AsyncGenerator<Unnamed> {
  // Records are made before their objects: list first, then ask.
  for await (const { folders, objects } of inventory.list(shelf.folder)) {
    const keys = [...folders, ...objects.map(({ key }) => key)];
    const known = await shelf.areKnown(keys.map((key) => key.slice(shelf.folder.length).replace(/\/$/, '')));
    const isUnnamed = (key: string): boolean => known[keys.indexOf(key)] === false;
    for (const object of objects) if (isUnnamed(object.key)) yield kept(object, shelf);
    for (const folder of folders.filter(isUnnamed)) {
      for await (const inside of inventory.list(folder)) {
        for (const object of inside.objects) yield kept(object, shelf);
      }
    }
  }
}

function kept(object: ListedObject, { keepSeconds }: Shelf): Unnamed {
  return { ...object, untilMs: object.writtenAtMs + keepSeconds * 1000 };
}

const PAGE = 500;

/** @param root of the file storage (file-storage.ts) */
export function fileInventory(root: string): Inventory {
  return {
    async *list(folder) {
      const entries = await entriesOf(join(root, folder));
      for (let at = 0; at < entries.length; at += PAGE) {
        const page = entries.slice(at, at + PAGE);
        const folders = page.filter((entry) => entry.isDirectory()).map(({ name }) => `${folder}${name}/`);
        const files = page.filter((entry) => entry.isFile()).map(({ name }) => `${folder}${name}`);
        const objects = await Promise.all(files.map((key) => described(root, key)));
        yield { folders, objects: objects.filter((object) => object !== undefined) };
      }
    },
    async remove(key) {
      await rm(join(root, key), { force: true });
      // A job's folder goes with its last file; `uploads` and the like stay.
      if (key.split('/').length > 2 && !key.includes('/.')) {
        await rmdir(join(root, dirname(key))).catch(() => undefined);
      }
    },
  };
}

async function entriesOf(path: string): Promise<Dirent[]> {
  return readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

/** Undefined if it has just gone. */
async function described(root: string, key: string): Promise<ListedObject | undefined> {
  const found = await stat(join(root, key)).catch(() => undefined);
  return found && { key, sizeBytes: found.size, writtenAtMs: found.mtimeMs };
}
