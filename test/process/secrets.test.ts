/** The file of the root secret: who makes it, and what those see who come meanwhile. */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { savedSecretKey } from '../../src/process/secrets.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-secrets-'));
});
afterAll(() => rm(folder, { recursive: true }));

it('is made once by those who start at the same time, for its owner alone', async () => {
  const path = join(folder, 'new/folder/secret-key');
  const seen = await Promise.all(Array.from({ length: 20 }, () => savedSecretKey(path)));
  expect(new Set(seen).size).toBe(1);
  expect(seen[0]).toMatch(/^[0-9a-f]{64}$/);
  expect((await readFile(path, 'utf8')).trim()).toBe(seen[0]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('is waited for while another process writes it', async () => {
  const path = join(folder, 'secret-key');
  await writeFile(path, '');
  const waiting = savedSecretKey(path, 60_000);
  // Whoever came at the same time, and waits for less, finds nothing.
  await expect(savedSecretKey(path, 0)).rejects.toThrow('does not hold a secret');
  await writeFile(path, `${'a'.repeat(32)}\n`);
  expect(await waiting).toBe('a'.repeat(32));
});

it('is refused, and not replaced, when it stays too short', async () => {
  const path = join(folder, 'secret-key');
  await writeFile(path, 'short');
  await expect(savedSecretKey(path, 50)).rejects.toThrow(
    `${path} does not hold a secret of at least 32 bytes`,
  );
  expect(await readFile(path, 'utf8')).toBe('short');
});
