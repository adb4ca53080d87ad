import { Readable } from 'node:stream';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { StorageLate, withDeadline } from '../../src/storage/deadline.ts';
import type { Storage } from '../../src/storage/storage.ts';

const MS = 50;

const never = (): Promise<never> => new Promise(() => undefined);
const hanging: Storage = {
  publish: never,
  write: never,
  stat: never,
  read: never,
  localCopy: never,
  remove: never,
  ping: never,
};

describe('a storage that does not answer', () => {
  test.each<[string, (storage: Storage) => Promise<unknown>]>([
    ['stat', (storage) => storage.stat('a')],
    ['read', (storage) => storage.read('a')],
    ['remove', (storage) => storage.remove('a')],
    ['ping', (storage) => storage.ping()],
    ['write', (storage) => storage.write('a', Readable.from(['x']))],
  ])('%s fails in time, with a code that says so', async (_operation, ask) => {
    const error = await ask(withDeadline(hanging, MS)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StorageLate);
    expect(error).toMatchObject({ code: 'ETIMEDOUT' });
  });

  test('bytes may take longer than the deadline', async () => {
    const slow: Storage = {
      ...hanging,
      ping: async () => undefined,
      write: (key) => delay(4 * MS, { key, sizeBytes: 1 }),
      publish: (_path, key) => delay(4 * MS, { key, sizeBytes: 2 }),
    };
    const storage = withDeadline(slow, MS);
    expect(await storage.write('a', Readable.from(['x']))).toEqual({ key: 'a', sizeBytes: 1 });
    expect(await storage.publish('/a', 'a')).toEqual({ key: 'a', sizeBytes: 2 });
  });

  test('what is opened too late is closed again', async () => {
    const opened = Readable.from(['x']);
    const late = Promise.withResolvers<Readable>();
    const storage = withDeadline({ ...hanging, read: () => late.promise }, MS);
    await expect(storage.read('a')).rejects.toThrow(StorageLate);
    expect(opened.destroyed).toBe(false);
    late.resolve(opened);
    await new Promise((resolve) => opened.once('close', resolve));
  });

  test('what is refused too late bothers nobody', async () => {
    const late = Promise.withResolvers<never>();
    const storage = withDeadline({ ...hanging, remove: () => late.promise }, MS);
    await expect(storage.remove('a')).rejects.toThrow(StorageLate);
    late.reject(new Error('refused'));
    // What nobody handles is told by the next turn, and fails the run.
    await turn();
  });
});

test('a process that was busy does not blame a storage that answers a little later', async () => {
  const found = { key: 'a', sizeBytes: 1 };
  const stat = async (): Promise<typeof found> => {
    // As a file system does that is asked several things, one after the other.
    for (let asked = 0; asked < 5; asked += 1) await turn();
    return found;
  };
  const asked = withDeadline({ ...hanging, stat }, MS).stat('a');
  for (const until = performance.now() + 3 * MS; performance.now() < until; );
  expect(await asked).toEqual(found);
});
