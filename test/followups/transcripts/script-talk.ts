/** A talk of which it is known when each word is said: words of flite one by one, with gaps between words and pauses between sentences. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const RATE = 16_000;
/** Of what flite says, of full scale: what is quieter does not count to a word. */
const AUDIBLE = 0.01 * 32_768;

/** Unlike one another, so that whoever knows only these hears the right one. */
export const VOCABULARY = [
  'evening',
  'picture',
  'strawberry',
  'seventeen',
  'mountain',
  'yesterday',
  'kitchen',
  'butterfly',
  'window',
  'harbor',
] as const;

interface SpokenWord {
  readonly text: string;
  /** Seconds. */
  readonly start: number;
  readonly end: number;
}

export interface ScriptTalk {
  readonly samples: Int16Array;
  readonly words: readonly SpokenWord[];
}

export async function makeScriptTalk(seconds: number): Promise<ScriptTalk> {
  const said = await Promise.all(VOCABULARY.map(spoken));
  const samples = new Int16Array(seconds * RATE);
  const words: SpokenWord[] = [];
  const random = randomness(11);
  let at = RATE / 2;
  for (;;) {
    const chosen = Math.floor(random() * VOCABULARY.length);
    const word = said[chosen] ?? new Int16Array();
    if (at + word.length > samples.length) return { samples, words };
    samples.set(word, at);
    words.push({ text: VOCABULARY[chosen] ?? '', start: at / RATE, end: (at + word.length) / RATE });
    // Sentences of five words on average.
    const gap = random() < 1 / 5 ? 0.4 + random() * 0.8 : 0.05 + random() * 0.1;
    at += word.length + Math.round(gap * RATE);
  }
}

async function spoken(word: string): Promise<Int16Array> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-test-flite-'));
  try {
    const path = join(folder, 'word.wav');
    await run('flite', ['-voice', 'slt', '-t', word, '-o', path]);
    const bytes = (await readFile(path)).subarray(44);
    const samples = new Int16Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~1)),
    );
    const isHeard = (sample: number): boolean => Math.abs(sample) > AUDIBLE;
    return samples.slice(samples.findIndex(isHeard), samples.findLastIndex(isHeard) + 1);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The same numbers in each run (a linear congruential generator, Numerical Recipes). */
function randomness(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
