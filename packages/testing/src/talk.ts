/**
 * A talk of which it is known when each word is said: words of flite one by one, with gaps between
 * words and pauses between sentences.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cachedFolder } from './media-cache.ts';

const RATE = 16_000;
const WORDS =
  'the sound post is a small piece of wood inside violin which carries from top to back and without it strings would press cracked attack stopped appetite kept doctor picture'.split(
    ' ',
  );
/** What of a word is quieter, of full scale, does not count to it. */
const AUDIBLE = 60 / 32_768;

export interface Talk {
  readonly samples: Int16Array;
  /** Of each word, samples. */
  readonly words: readonly { readonly from: number; readonly to: number }[];
}

/** @param noise of full scale, under all of it */
export async function makeTalk(seconds: number, noise: number): Promise<Talk> {
  const said = await allSpoken(WORDS);
  const samples = new Int16Array(seconds * RATE);
  const words: { from: number; to: number }[] = [];
  const random = randomness(7);
  let at = 0;
  for (;;) {
    const word = said[Math.floor(random() * said.length)] ?? new Int16Array();
    if (at + word.length > samples.length) break;
    samples.set(word, at);
    words.push({ from: at, to: at + word.length });
    at += word.length;
    // Within a sentence words follow one another closely; a sentence ends after nine on average.
    const gap = random() < 1 / 9 ? 0.25 + random() * 0.9 : 0.01 + random() * 0.06;
    at += Math.round(gap * RATE);
  }
  if (noise > 0) {
    for (let index = 0; index < samples.length; index += 1) {
      samples[index] = (samples[index] ?? 0) + Math.round((random() * 2 - 1) * noise * 32_767);
    }
  }
  return { samples, words };
}

/** By one run of ffmpeg for all. */
async function allSpoken(words: readonly string[]): Promise<Int16Array[]> {
  const folder = await cachedFolder(['words', words, RATE], async (place) => {
    const inputs = words.flatMap((word) => ['-f', 'lavfi', '-i', `flite=text=${word}`]);
    const outputs = words.flatMap((word, nth) => [
      ...['-map', String(nth), '-ac', '1', '-ar', String(RATE), '-f', 's16le', join(place, word)],
    ]);
    await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...inputs, ...outputs]);
  });
  return Promise.all(
    words.map(async (word) => {
      const bytes = await readFile(join(folder, word));
      const samples = new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
      const isHeard = (sample: number): boolean => Math.abs(sample) > AUDIBLE * 32_767;
      return samples.slice(samples.findIndex(isHeard), samples.findLastIndex(isHeard) + 1);
    }),
  );
}

/** The same numbers in each run (a linear congruential generator, Numerical Recipes). */
function randomness(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export async function writeWav(path: string, samples: Int16Array): Promise<void> {
  const head = Buffer.alloc(44);
  head.write('RIFF');
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE, 24);
  head.writeUInt32LE(RATE * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.byteLength, 40);
  await writeFile(path, Buffer.concat([head, Buffer.from(samples.buffer)]));
}
