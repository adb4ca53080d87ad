/** 16-bit mono WAV at 16 kHz, for runs of voice notes and transcripts: its loudness and parts. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Levels, type Stretch, WINDOWS_PER_SECOND } from './pauses.ts';

export const PCM_RATE = 16_000;
export const WINDOW_SAMPLES = PCM_RATE / WINDOWS_PER_SECOND;
const SAMPLE_BYTES = 2;
const WINDOW_BYTES = WINDOW_SAMPLES * SAMPLE_BYTES;
const COPIED_AT_ONCE = 1024 * 1024;

interface PcmFile {
  readonly path: string;
  /** Where its samples begin, bytes. */
  readonly dataAt: number;
  /** Of its one channel. */
  readonly samples: number;
}

/** @param path of a WAV file as ffmpeg writes it */
export async function openPcm(path: string): Promise<PcmFile> {
  await using file = await open(path);
  const { size } = await file.stat();
  const dataAt = await findData(file);
  return { path, dataAt, samples: Math.floor((size - dataAt) / SAMPLE_BYTES) };
}

/** Metadata before the samples is shorter. */
const LONGEST_HEAD_BYTES = 64 * 1024;

/**
 * Where the samples begin. Chunks have a name and a size (RIFF; RF64 has the last one elsewhere).
 * @returns undefined where the head does not reach that far
 */
function dataIn(head: Buffer): number | undefined {
  let at = 12;
  while (at + 8 <= head.length) {
    const isData = head.toString('latin1', at, at + 4) === 'data';
    at += 8;
    if (isData) return at;
    at += head.readUInt32LE(at - 4);
  }
  return undefined;
}

async function findData(file: FileHandle): Promise<number> {
  const head = Buffer.alloc(LONGEST_HEAD_BYTES);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return dataIn(head.subarray(0, bytesRead)) ?? withoutSamples();
}

function withoutSamples(): never {
  throw new Error('a WAV file without samples');
}

/** dB below full scale of each 20 ms; −Infinity for silence. A partial last window counts. */
export async function levelsOf({ path, dataAt }: PcmFile, signal: AbortSignal): Promise<Levels> {
  const meter = new LevelMeter();
  for await (const chunk of createReadStream(path, { start: dataAt, highWaterMark: 256 * 1024, signal }))
    meter.push(chunk);
  return meter.end();
}

/** The same for a stream, with the start and the number of its samples. */
export async function readLevels(
  wav: AsyncIterable<Buffer>,
): Promise<Pick<PcmFile, 'dataAt' | 'samples'> & { readonly levels: Levels }> {
  const meter = new LevelMeter();
  let head = Buffer.alloc(0);
  let dataAt: number | undefined;
  for await (const chunk of wav) {
    if (dataAt !== undefined) {
      meter.push(chunk);
      continue;
    }
    head = Buffer.concat([head, chunk]);
    dataAt = dataIn(head);
    if (dataAt !== undefined) meter.push(head.subarray(dataAt));
    else if (head.length > LONGEST_HEAD_BYTES) break;
  }
  const levels = meter.end();
  return { dataAt: dataAt ?? withoutSamples(), samples: meter.samples, levels };
}

class LevelMeter {
  readonly #levels: number[] = [];
  /** Complete ones. */
  samples = 0;
  #sum = 0;
  #count = 0;
  #odd: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): void {
    const bytes = this.#odd.length === 0 ? chunk : Buffer.concat([this.#odd, chunk]);
    let at = 0;
    while (at + 1 < bytes.length) {
      const whole = bytes.length - (bytes.length % SAMPLE_BYTES);
      const to = Math.min(whole, at + (WINDOW_SAMPLES - this.#count) * SAMPLE_BYTES);
      let sum = 0;
      this.#count += (to - at) / SAMPLE_BYTES;
      for (; at < to; at += SAMPLE_BYTES) sum += bytes.readInt16LE(at) ** 2;
      this.#sum += sum;
      if (this.#count === WINDOW_SAMPLES) this.#endWindow();
    }
    this.samples += at / SAMPLE_BYTES;
    this.#odd = bytes.subarray(at);
  }

  end(): Levels {
    if (this.#count > 0) this.#endWindow();
    return Float32Array.from(this.#levels);
  }

  #endWindow(): void {
    this.#levels.push(10 * Math.log10(this.#sum / this.#count / 32_768 ** 2));
    this.#sum = 0;
    this.#count = 0;
  }
}

/** The byte range of a stretch in the file. */
export function bytesOf(
  { dataAt, samples }: Pick<PcmFile, 'dataAt' | 'samples'>,
  { from, to }: Stretch,
): { readonly at: number; readonly bytes: number } {
  const begin = from * WINDOW_BYTES;
  return { at: dataAt + begin, bytes: Math.min(to * WINDOW_BYTES, samples * SAMPLE_BYTES) - begin };
}

/** Windows that fit a file of so many bytes. */
export function windowsWithin(bytes: number): number {
  return Math.floor((bytes - HEAD_BYTES) / WINDOW_BYTES);
}

/** Writes stretches of one file, in order, to another. */
export async function writePcm(
  { path, dataAt, samples }: PcmFile,
  stretches: readonly Stretch[],
  target: string,
): Promise<PcmFile> {
  const parts = stretches.map((stretch) => bytesOf({ dataAt, samples }, stretch));
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  await using source = await open(path);
  await using written = await open(target, 'w');
  await written.write(wavHead(bytes));
  const buffer = Buffer.alloc(COPIED_AT_ONCE);
  for (const part of parts) {
    for (let done = 0; done < part.bytes; ) {
      const wanted = Math.min(buffer.length, part.bytes - done);
      const { bytesRead } = await source.read(buffer, 0, wanted, part.at + done);
      if (bytesRead === 0) throw new Error('a WAV file became shorter while it was read');
      await written.writeFile(buffer.subarray(0, bytesRead));
      done += bytesRead;
    }
  }
  return { path: target, dataAt: HEAD_BYTES, samples: bytes / SAMPLE_BYTES };
}

const HEAD_BYTES = 44;

/** A file's header for so many bytes of samples. 36 hours are less than the 4 GiB of a RIFF. */
export function wavHead(bytes: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(HEAD_BYTES - 8 + bytes, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(PCM_RATE, 24);
  head.writeUInt32LE(PCM_RATE * SAMPLE_BYTES, 28);
  head.writeUInt16LE(SAMPLE_BYTES, 32);
  head.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes, 40);
  return head;
}
