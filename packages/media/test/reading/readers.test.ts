/** A process for each key that has something read: nobody waits for another's. */
import { writeFile } from 'node:fs/promises';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, expect, it } from 'vitest';
import { Readers } from '../../src/reading/reader.ts';

const folder = mediaFolder();
const readers = new Readers();
afterAll(() => readers.close());
/** Of one that answers. */
const PATIENCE_MS = 30_000;

it('nobody waits for what is read for another owner, and one process is kept', async () => {
  const path = folder.at('one.m3u8');
  await writeFile(path, '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n0.ts\n#EXT-X-ENDLIST\n');
  const of = (owner: string, signal = new AbortController().signal) =>
    readers.run('playlist', { path, url: 'http://cdn.example/stream.m3u8' }, { owner, signal });
  await of('hostile');
  const hostile = readers.pidOf('hostile');
  // 0 would stop this process and all that belong to it.
  if (hostile === undefined) throw new Error('no process reads for the owner alone');
  process.kill(hostile, 'SIGSTOP');
  const underway = of('hostile');
  try {
    await of('other', AbortSignal.timeout(PATIENCE_MS));
  } finally {
    process.kill(hostile, 'SIGCONT');
    await underway;
  }
  expect([readers.pidOf('hostile'), readers.pidOf('other')]).toEqual([hostile, undefined]);
  // The next owner takes what is idle.
  await of('third');
  expect([readers.pidOf('hostile'), readers.pidOf('third')]).toEqual([undefined, hostile]);
});
