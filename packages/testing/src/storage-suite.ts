/** What every storage must do, whatever is behind it: run on each one with a factory of its own. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

export interface StorageUnderTest {
  readonly storage: Storage;
  /** Every key that holds an object, or a piece of one, in any order. */
  keys(): Promise<string[]>;
  close(): Promise<void>;
}

export function describeStorage(name: string, create: () => Promise<StorageUnderTest>): void {
  describe(name, () => {
    let subject: StorageUnderTest;
    let storage: Storage;
    let workspace: string;

    beforeEach(async () => {
      workspace = await mkdtemp(join(tmpdir(), 'workspace-'));
      subject = await create();
      storage = subject.storage;
    });
    afterEach(async () => {
      await subject.close();
      await rm(workspace, { recursive: true });
    });

    const localFile = async (content: string | Uint8Array, fileName = 'result') => {
      const path = join(workspace, fileName);
      await writeFile(path, content);
      return path;
    };
    const put = (key: string, content: string | Uint8Array) => storage.write(key, Readable.from([content]));
    const contentOf = async (key: string) => (await buffer(await storage.read(key))).toString();

    test('a published file is an object with its size', async () => {
      const key = 'files/job_0123456789abcdef/3f2a.mp3';
      expect(await storage.publish(await localFile('audio'), key)).toEqual({ key, sizeBytes: 5 });
      expect(await storage.stat(key)).toEqual({ key, sizeBytes: 5 });
      expect(await contentOf(key)).toBe('audio');
      expect(await subject.keys()).toEqual([key]);
    });

    test('a written stream is an object with its size', async () => {
      const content = randomBytes(1_000_000);
      const pieces = [content.subarray(0, 1), content.subarray(1, 700_000), content.subarray(700_000)];
      const written = await storage.write('uploads/u', Readable.from(pieces));
      expect(written).toEqual({ key: 'uploads/u', sizeBytes: 1_000_000 });
      expect((await buffer(await storage.read('uploads/u'))).equals(content)).toBe(true);
    });

    test('an object may be empty', async () => {
      expect(await storage.write('empty', Readable.from([]))).toEqual({ key: 'empty', sizeBytes: 0 });
      await storage.publish(await localFile(''), 'empty-too');
      expect(await contentOf('empty')).toBe('');
      expect(await contentOf('empty-too')).toBe('');
    });

    test('a key that is used again holds the newer object', async () => {
      await put('a/b', 'older and longer');
      await put('a/b', 'newer');
      expect(await contentOf('a/b')).toBe('newer');
      await storage.publish(await localFile('newest'), 'a/b');
      expect(await contentOf('a/b')).toBe('newest');
    });

    test('a reader keeps what it opened when the key is used again or removed', async () => {
      await put('a', 'first');
      const reader = await storage.read('a');
      await put('a', 'second');
      expect((await buffer(reader)).toString()).toBe('first');
      const another = await storage.read('a');
      await storage.remove('a');
      expect((await buffer(another)).toString()).toBe('second');
    });

    test('a range is read alone', async () => {
      await put('digits', '0123456789');
      for (const [start, end, expected] of [
        [0, 0, '0'],
        [0, 9, '0123456789'],
        [3, 5, '345'],
        [9, 9, '9'],
        [7, 100, '789'],
      ] as const) {
        expect((await buffer(await storage.read('digits', { start, end }))).toString()).toBe(expected);
      }
    });

    test('a range of nothing, or behind the end, is empty', async () => {
      await put('none', '');
      await put('digits', '0123456789');
      expect(await buffer(await storage.read('none', { start: 0, end: 5 }))).toHaveLength(0);
      expect(await buffer(await storage.read('digits', { start: 10, end: 15 }))).toHaveLength(0);
    });

    describe('an object of many parts', () => {
      const MIB = 1024 * 1024;
      const content = randomBytes(6 * MIB);

      test('written comes back as it was, whole and in ranges across parts', async () => {
        expect(await put('large', content)).toEqual({ key: 'large', sizeBytes: content.length });
        expect((await buffer(await storage.read('large'))).equals(content)).toBe(true);
        const [start, end] = [5 * MIB - 3, 5 * MIB + 3];
        const range = await buffer(await storage.read('large', { start, end }));
        expect(range.equals(content.subarray(start, end + 1))).toBe(true);
      });

      test('published comes back as it was, also as a local path', async () => {
        const local = await localFile(content);
        expect(await storage.publish(local, 'large')).toEqual({ key: 'large', sizeBytes: content.length });
        await expect(readFile(local)).rejects.toMatchObject({ code: 'ENOENT' });
        const path = await storage.localCopy('large', workspace);
        expect((await readFile(path)).equals(content)).toBe(true);
      });

      test('that breaks off in the middle leaves nothing', async () => {
        const cut = new Error('cut');
        async function* broken() {
          yield content.subarray(0, 6 * MIB - 1);
          throw cut;
        }
        await expect(storage.write('large', Readable.from(broken()))).rejects.toBe(cut);
        expect(await subject.keys()).toEqual([]);
      });

      test('may be left by its reader in the middle', async () => {
        await put('large', content);
        const reader = await storage.read('large');
        await new Promise((resolve) => reader.once('data', resolve));
        const closed = new Promise((resolve) => reader.once('close', resolve));
        reader.destroy();
        await closed;
        await storage.remove('large');
        expect(await subject.keys()).toEqual([]);
      });
    });

    test('a key may have every character that is allowed', async () => {
      const key = 'AZaz09_-/a.b-c_d/0...9/_._/-.-';
      await put(key, 'x');
      expect(await contentOf(key)).toBe('x');
      expect(await subject.keys()).toEqual([key]);
      await storage.remove(key);
      expect(await storage.stat(key)).toBeUndefined();
    });

    test('an object is not seen before its stream has ended', async () => {
      let finish = () => {};
      const finished = new Promise<void>((resolve) => {
        finish = resolve;
      });
      let begun = () => {};
      const started = new Promise<void>((resolve) => {
        begun = resolve;
      });
      async function* content() {
        yield 'first half, ';
        begun();
        await finished;
        yield 'second half';
      }
      const writing = storage.write('slow', Readable.from(content()));
      await started;
      expect(await storage.stat('slow')).toBeUndefined();
      await expect(storage.read('slow')).rejects.toBeInstanceOf(ObjectNotFound);
      finish();
      await writing;
      expect(await contentOf('slow')).toBe('first half, second half');
    });

    test('a stream that fails leaves what was there, or nothing, and the error as it was', async () => {
      await put('kept', 'kept');
      const noSpace = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      async function* content() {
        yield randomBytes(300_000);
        throw noSpace;
      }
      for (const key of ['kept', 'broken']) {
        await expect(storage.write(key, Readable.from(content()))).rejects.toBe(noSpace);
      }
      expect(await contentOf('kept')).toBe('kept');
      expect(await storage.stat('broken')).toBeUndefined();
      expect(await subject.keys()).toEqual(['kept']);
    });

    test('many writers of one key leave one whole object', async () => {
      const contents = Array.from({ length: 10 }, (_, index) => String(index).repeat(100_000));
      await Promise.all(contents.map((content) => put('contested/key', content)));
      expect(contents).toContain(await contentOf('contested/key'));
      expect(await subject.keys()).toEqual(['contested/key']);
    });

    test('objects come and go beside each other', async () => {
      await Promise.all(
        Array.from({ length: 8 }, async (_, writer) => {
          for (let round = 0; round < 3; round++) {
            await put(`beside/${writer}`, 'x');
            await storage.remove(`beside/${writer}`);
          }
        }),
      );
      expect(await subject.keys()).toEqual([]);
    });

    test('what is not there is told as such', async () => {
      expect(await storage.stat('nothing/here')).toBeUndefined();
      await expect(storage.read('nothing/here')).rejects.toBeInstanceOf(ObjectNotFound);
      await expect(storage.localCopy('nothing/here', workspace)).rejects.toBeInstanceOf(ObjectNotFound);
      await storage.remove('nothing/here');
    });

    test('a key that leads to others is no object itself', async () => {
      await put('folder/object', 'x');
      expect(await storage.stat('folder')).toBeUndefined();
      await expect(storage.read('folder')).rejects.toBeInstanceOf(ObjectNotFound);
      expect(await storage.stat('folder/object/further')).toBeUndefined();
    });

    test('a removed object is gone, its neighbours stay', async () => {
      await put('a/one', '1');
      await put('a/two', '2');
      await storage.remove('a/one');
      expect(await storage.stat('a/one')).toBeUndefined();
      expect(await contentOf('a/two')).toBe('2');
      expect(await subject.keys()).toEqual(['a/two']);
    });

    test('a program gets a local path with the content', async () => {
      await put('media/voice.ogg', 'voice');
      const path = await storage.localCopy('media/voice.ogg', workspace);
      expect(await readFile(path, 'utf8')).toBe('voice');
    });

    test('a local file that is not there, or none, is not published', async () => {
      await expect(storage.publish(join(workspace, 'missing'), 'a')).rejects.toMatchObject({
        code: 'ENOENT',
      });
      await expect(storage.publish(workspace, 'a')).rejects.toThrow('regular file');
      await symlink('/etc/hostname', join(workspace, 'link'));
      await expect(storage.publish(join(workspace, 'link'), 'a')).rejects.toThrow('regular file');
      expect(await subject.keys()).toEqual([]);
    });

    const noKeys = [
      '',
      '/',
      '/etc/passwd',
      '..',
      '../outside',
      'a/../../outside',
      'a/..',
      'a/./b',
      '.',
      '.hidden',
      'a/.hidden/b',
      'a//b',
      'a/',
      'a\\b',
      'a\0b',
      'a b',
      'a\nb',
      'ä',
      'a%2f..',
      'x'.repeat(201),
      Array(200).fill('abcd').join('/'),
    ];

    test('what is no key is refused, whatever is asked', async () => {
      const local = await localFile('x');
      for (const key of noKeys) {
        await expect(put(key, 'x'), key).rejects.toThrow('storage key');
        await expect(storage.publish(local, key), key).rejects.toThrow('storage key');
        await expect(storage.stat(key), key).rejects.toThrow('storage key');
        await expect(storage.read(key), key).rejects.toThrow('storage key');
        await expect(storage.localCopy(key, workspace), key).rejects.toThrow('storage key');
        await expect(storage.remove(key), key).rejects.toThrow('storage key');
      }
      expect(await readFile(local, 'utf8')).toBe('x');
      expect(await subject.keys()).toEqual([]);
    });

    test('a storage that works answers a ping', async () => {
      await storage.ping();
    });
  });
}
