/** What is fetched of a stream, and how often it is handed on anew. */
import { noAbort } from 'soundpost-testing/extracting';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import type { StreamContext } from '../../src/streams/fetch.ts';
import { fetchSegments } from '../../src/streams/segments/fetch.ts';
import { box } from '../sparse/mp4-boxes.ts';
import { fragment, header } from './fmp4.ts';

const folder = mediaFolder();

it('headers that segments alternate are the same bytes each time, so that each is parsed once', async () => {
  const asked: string[] = [];
  const context: StreamContext = {
    async fetch({ url }, take) {
      asked.push(url);
      const name = Buffer.from(url);
      const bytes = url.startsWith('header') ? header(1, 1, box('udta', name)) : fragment;
      return take({ url, bytes: oneChunk(bytes) });
    },
    ...{ isFetchFailure: () => false, reading: { signal: noAbort }, folder: folder.path, signal: noAbort },
    makeRoom: async () => {},
  };
  const segments = Array.from({ length: 10 }, (_, nth) => ({
    ...{
      url: `segment-${nth}`,
      seconds: (2 * 1024) / 48_000,
      breaksClock: false,
      init: { url: `header-${nth % 2}` },
    },
  }));
  const taken: unknown[] = [];
  await fetchSegments(context, segments, async (fetched) => {
    if ('init' in fetched) taken.push(fetched.init);
  });
  expect(asked.filter((url) => url.startsWith('header')).toSorted()).toEqual(['header-0', 'header-1']);
  expect(taken).toHaveLength(10);
  expect(new Set(taken).size).toBe(2);
});

async function* oneChunk(bytes: Buffer) {
  yield bytes;
}
