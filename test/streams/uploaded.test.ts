/** A playlist that is uploaded names files that nobody sent along: it is told so, and nobody is asked for them. */
import { Readable } from 'node:stream';
import { recordConnects } from 'soundpost-testing/connect-recorder';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { uploadStorageKey } from '../../src/jobs/uploads/record.ts';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extractFrom } from './stream-run.ts';

let around: Surroundings;

beforeAll(async () => {
  around = await makeSurroundings('127.0.0.1:80');
});
afterAll(() => around.close());

const HLS = '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nhttp://127.0.0.1/a.ts\n#EXT-X-ENDLIST\n';
const DASH =
  '<MPD type="static"><Period><AdaptationSet contentType="audio"><Representation><BaseURL>http://127.0.0.1/a.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>';

it.each([
  ['HLS', HLS],
  ['HLS behind a byte order mark', `\ufeff${HLS}`],
  ['HLS behind white space', ` \r\n\t\n${HLS}`],
  ['DASH', DASH],
  ['DASH behind a declaration', `<?xml version="1.0"?>\n${DASH}`],
  ['DASH behind a byte order mark', `\ufeff${DASH}`],
  ['DASH behind white space', `\n\n  ${DASH}`],
  ['DASH behind a comment with an element', `<!-- made by <tool> -->${DASH}`],
])('%s', async (_name, text) => {
  const file = 'upl_0123456789abcdef';
  await around.storage.write(uploadStorageKey(file), Readable.from([Buffer.from(text)]));
  const connects = recordConnects();
  try {
    const job = extractFrom(around, { type: 'upload', file, name: 'talk.mp4' }, { format: 'mp3' });
    await expect(job).rejects.toMatchObject({
      code: 'INVALID_VIDEO',
      details: 'the file is a playlist, which does not contain the audio; use its URL instead',
    });
  } finally {
    connects.stop();
  }
  expect(connects.attempts).toEqual([]);
  expect(around.left()).toEqual([]);
});
