/** Shortens the long pauses of a recording, or cuts it into voice notes that fit a bubble each. */
import { appendFile, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Job } from '../input-run.ts';
import { withSerial } from '../ogg/pages.ts';
import { packetsOf } from '../ogg/voice-form.ts';
import { type RunChoice, VOICE_BUBBLE_BYTES } from '../plan.ts';
import type { RenderedFile } from '../render.ts';
import { wholeOf } from '../settle.ts';
import { cutBefore, type Levels, pausesIn, type Stretch, withoutLongPauses } from './pauses.ts';
import { levelsOf, openPcm, WINDOW_SAMPLES, writePcm } from './pcm-file.ts';

/** Encodes a WAV: at a bitrate lowered until it fits a bubble, or at its quality's. */
type NoteMaker = (
  pcm: Awaited<ReturnType<typeof openPcm>>,
  path: string,
  bitrate: 'fitting' | 'full',
) => Promise<RenderedFile>;

/** Leaves room for headers, and for parts that become a little larger than within the whole. */
const MARGIN = 0.98;
/** Each packet's share of page headers: there is one page a second. */
const PAGE_BYTES_A_PACKET = 2;

/**
 * @param recording the whole recording as WAV; it can be split only at 16 kHz in mono
 * @param target of the notes, in order: a chained Ogg file, which players play as one
 */
export async function renderNotes(
  job: Job,
  recording: string,
  choice: RunChoice,
  target: string,
  note: NoteMaker,
): Promise<{ file: RenderedFile; parts: ReturnType<typeof wholeOf>[] }> {
  const { scratch, signal } = job;
  let pcm = await openPcm(recording);
  let levels = await levelsOf(pcm, signal);
  if (choice.trimSilence) {
    const kept = withoutLongPauses(levels);
    if (kept.length > 1) {
      pcm = await writePcm(pcm, kept, join(scratch, 'trimmed.wav'));
      levels = await levelsOf(pcm, signal);
    }
  }
  const whole = await note(pcm, target, choice.split ? 'full' : 'fitting');
  if (!choice.split || whole.sizeBytes <= VOICE_BUBBLE_BYTES) {
    return { file: whole, parts: [wholeOf(whole)] };
  }
  const ends = await endsOfParts(target, levels);
  await rm(target);
  const parts: ReturnType<typeof wholeOf>[] = [];
  let offset = 0;
  for (const [nth, to] of ends.entries()) {
    signal.throwIfAborted();
    const stretch: Stretch = { from: ends[nth - 1] ?? 0, to };
    const path = join(scratch, `note-${nth}.ogg`);
    const slice = await writePcm(pcm, [stretch], join(scratch, 'note.wav'));
    const made = await note(slice, path, 'fitting');
    parts.push({ ...wholeOf(made), offset });
    offset += made.sizeBytes;
    await appendFile(target, withSerial(await readFile(path), nth + 1));
    await rm(path);
  }
  return { file: { ...whole, path: target, sizeBytes: offset }, parts };
}

/** The windows at which the notes end, by the bytes of the whole up to each of them. */
async function endsOfParts(whole: string, levels: Levels): Promise<number[]> {
  const pauses = pausesIn(levels);
  const room = VOICE_BUBBLE_BYTES * MARGIN;
  // Bytes of the whole up to the end of each window.
  const bytes = new Float64Array(levels.length + 1);
  let window = 0;
  let sum = 0;
  for await (const packet of packetsOf(whole)) {
    const end = Math.min(levels.length, Math.ceil(packet.endSamples / 3 / WINDOW_SAMPLES));
    sum += packet.bytes + PAGE_BYTES_A_PACKET;
    for (; window < end; window += 1) bytes[window + 1] = sum;
  }
  bytes.fill(sum, window + 1);
  const ends: number[] = [];
  for (let from = 0; from < levels.length; from = ends.at(-1) ?? levels.length) {
    const limit = (bytes[from] ?? 0) + room;
    let latest = from + 1;
    while (latest < levels.length && (bytes[latest + 1] ?? 0) <= limit) latest += 1;
    ends.push(latest === levels.length ? latest : cutBefore(levels, pauses, from, latest));
  }
  return ends;
}
