/** What is fetched of a stream, and how often it is handed on anew. */
import { noAbort } from 'soundpost-testing/extracting';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { fetchSegments, type StreamContext } from '../../src/streams/fetch.ts';

const folder = mediaFolder();

it('headers that segments alternate are the same bytes each time, so that each is parsed once', async () => {
  const asked: string[] = [];
  const context: StreamContext = {
    async fetch({ url }, take) {
      asked.push(url);
      return take({ url, bytes: oneChunk(url) });
    },
    ...{ isFetchFailure: () => false, reading: { signal: noAbort }, folder: folder.path, signal: noAbort },
    makeRoom: async () => {},
  };
  const segments = Array.from({ length: 10 }, (_, nth) => ({
    ...{ url: `segment-${nth}`, seconds: 1, breaksClock: false, init: { url: `header-${nth % 2}` } },
  }));
  const taken: unknown[] = [];
  await fetchSegments(context, segments, async (_segment, _file, init) => {
    taken.push(init);
  });
  expect(asked.filter((url) => url.startsWith('header')).toSorted()).toEqual(['header-0', 'header-1']);
  expect(taken).toHaveLength(10);
  expect(new Set(taken).size).toBe(2);
});

async function* oneChunk(text: string) {
  yield Buffer.from(text);
}
