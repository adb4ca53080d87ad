import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { limitedBody } from '../src/exchange.ts';

const limits = { maxBytes: 1_000, minBytesPerSecond: 1, rateWindowMs: 60_000 };
const { signal } = new AbortController();

/** What undici does when the server closes before its parser, paused by a slow reader, has seen the last byte's end. */
function brokenAfter(bytes: number): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.alloc(bytes);
      throw Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
    })(),
  );
}

async function read(body: Readable, declaredBytes: number): Promise<number> {
  let received = 0;
  for await (const chunk of limitedBody(body, limits, signal, () => received === declaredBytes)) {
    received += chunk.length;
  }
  return received;
}

test('a body with all its declared bytes is complete, whatever the socket says after them', async () => {
  expect(await read(brokenAfter(500), 500)).toBe(500);
});

test.each([499, 501])('a body of 500 bytes that declared %i is not', async (declaredBytes) => {
  await expect(read(brokenAfter(500), declaredBytes)).rejects.toMatchObject({
    kind: 'reset',
    retryable: true,
  });
});
