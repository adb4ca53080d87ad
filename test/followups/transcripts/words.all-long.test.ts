// @module-tag flite
// @module-tag pocketsphinx
/** Words of a talk whose script is known, heard by a real recogniser: at the right time, and none lost or doubled where the recording was cut. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { byRun } from 'soundpost-testing/by-run';
import { writeWav } from 'soundpost-testing/talk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Transcript } from '../../../src/followups/transcripts/recording.ts';
import { transcribe } from '../../../src/followups/transcripts/transcribe.ts';
import { makeScriptTalk, type ScriptTalk, VOCABULARY } from './script-talk.ts';
import { startSphinx } from './sphinx-server.ts';
import type { TranscriberStub } from './transcriber-stub.ts';

const SECONDS = byRun({ all: 600, long: 3600 });
/** Parts of 60 s, and what OpenAI's server takes: 13 min. */
const PART_BYTES = byRun({ all: 60 * 32_000, long: 25_000_000 });
/** Words that are looked at one by one, on each side. */
const BESIDE_CUT = 5;
const PATIENCE_MS = 60_000 + SECONDS * 1000;

let folder: string;
let sphinx: TranscriberStub;
let talk: ScriptTalk;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-words-'));
  sphinx = await startSphinx(VOCABULARY);
  talk = await makeScriptTalk(SECONDS);
  await writeWav(join(folder, 'talk.wav'), talk.samples);
});
afterAll(async () => {
  await sphinx.close();
  await rm(folder, { recursive: true });
});

function heard(mostPartBytes: number): Promise<Transcript> {
  return transcribe({
    transcriber: { url: sphinx.url, apiKey: undefined, model: 'sphinx', timeoutMs: PATIENCE_MS },
    path: join(folder, 'talk.wav'),
    workspace: folder,
    startOffsetSeconds: 0,
    signal: new AbortController().signal,
    mostPartBytes,
  });
}

test(
  'in parts as in one the words of the script at their times, and beside each cut every one of them',
  async () => {
    const inParts = await heard(PART_BYTES);
    const lengths = sphinx.asked.map(({ seconds }) => seconds);
    expect(lengths.length).toBeGreaterThan(2);
    const inOne = await heard(Number.MAX_SAFE_INTEGER);
    expect(sphinx.asked.length).toBe(lengths.length + 1);
    const isOnTime = ({ segments }: Transcript, index: number): boolean => {
      const [word, script] = [segments[index], talk.words[index]];
      return word !== undefined && Math.abs(word.start - (script?.start ?? 0)) < 0.2;
    };
    for (const transcript of [inParts, inOne]) {
      const { segments } = transcript;
      expect(segments).toHaveLength(talk.words.length);
      const heardRight = talk.words.filter(({ text }, index) => segments[index]?.text === text);
      const onTime = talk.words.filter((_, index) => isOnTime(transcript, index));
      // PocketSphinx takes a word for another one now and then, and moves some by seconds: of an hour's 4,290 words up to 91, in parts or not.
      expect(heardRight.length).toBeGreaterThanOrEqual(0.97 * talk.words.length);
      expect(onTime.length).toBeGreaterThanOrEqual(0.97 * talk.words.length);
    }
    let cut = 0;
    for (const length of lengths.slice(0, -1)) {
      cut += length;
      const after = talk.words.findIndex(({ start }) => start >= cut);
      for (let index = Math.max(0, after - BESIDE_CUT); index < after + BESIDE_CUT; index += 1) {
        expect(inParts.segments[index]?.text).toBe(talk.words[index]?.text);
        expect(isOnTime(inParts, index)).toBe(true);
      }
    }
    expect(inParts.language).toBe('en');
    expect(inParts.durationSeconds).toBe(SECONDS);
  },
  2 * PATIENCE_MS,
);
