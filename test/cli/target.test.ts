/** Names of what is made, where another command takes one at the same moment. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { UsageError } from '../../src/cli/ending.ts';
import { chooseTarget, deliver } from '../../src/cli/target.ts';

const { signal } = new AbortController();
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-target-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Audio in whose middle somebody else takes the name. */
function overtaken(name: string): Readable {
  return Readable.from(
    (async function* () {
      yield 'the first half, ';
      await writeFile(join(folder, name), 'of somebody else');
      yield 'the second half';
    })(),
  );
}

it('a name that follows from the video gives way to one that came meanwhile', async () => {
  const target = await chooseTarget({ output: folder }, '.', process);
  const made = await deliver(target, overtaken('talk.mp3'), 'talk.mp3', signal);
  expect(made).toBe(join(folder, 'talk-2.mp3'));
  expect(await readFile(join(folder, 'talk-2.mp3'), 'utf8')).toBe('the first half, the second half');
  expect(await readFile(join(folder, 'talk.mp3'), 'utf8')).toBe('of somebody else');
});

it('a name that was given does not, and nothing of the audio is left beside it', async () => {
  const target = await chooseTarget({ output: join(folder, 'given.mp3') }, '.', process);
  const delivered = deliver(target, overtaken('given.mp3'), 'unused.mp3', signal);
  await expect(delivered).rejects.toThrow(UsageError);
  expect(await readFile(join(folder, 'given.mp3'), 'utf8')).toBe('of somebody else');
  expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([]);
});
