/** WAV of 16 or 24 bits, for shortened outputs, voice notes and transcripts: loudness and parts. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Levels, type Stretch, WINDOWS_PER_SECOND } from './pauses.ts';

/** Of voice notes and transcripts. */
export const PCM_RATE = 16_000;
export const WINDOW_SAMPLES = PCM_RATE / WINDOWS_PER_SECOND;
const COPIED_AT_ONCE = 1024 * 1024;

interface PcmForm {
  /** Of one channel. */
  readonly sampleBytes: 2 | 3;
  readonly channels: number;
  /** Of one channel in 20 ms. */
  readonly windowSamples: number;
}

const VOICE: PcmForm = { sampleBytes: 2, channels: 1, windowSamples: WINDOW_SAMPLES };

interface PcmFile {
  readonly path: string;
  /** Default: of speech. */
  readonly form?: PcmForm;
  /** Where its samples begin, bytes. */
  readonly dataAt: number;
  /** Of one channel. */
  readonly samples: number;
}

/** @param path of a WAV file as ffmpeg writes it, of 16 or 24 bits */
export async function openPcm(path: string): Promise<PcmFile> {
  await using file = await open(path);
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read(Buffer.alloc(LONGEST_HEAD_BYTES), 0, LONGEST_HEAD_BYTES, 0);
  const head = buffer.subarray(0, bytesRead);
  const dataAt = dataIn(head) ?? withoutSamples();
  const form = formIn(head);
  return { path, form, dataAt, samples: Math.floor((size - dataAt) / frameBytes(form)) };
}

/** By its first chunk, `fmt `. */
function formIn(head: Buffer): PcmForm {
  const at = head.indexOf('fmt ') + 8;
  const sampleRate = head.readUInt32LE(at + 4);
  return {
    channels: head.readUInt16LE(at + 2),
    sampleBytes: head.readUInt16LE(at + 14) === 24 ? 3 : 2,
    windowSamples: Math.round(sampleRate / WINDOWS_PER_SECOND),
  };
}

/** Of all channels. */
function frameBytes({ sampleBytes, channels }: PcmForm): number {
  return sampleBytes * channels;
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

function withoutSamples(): never {
  throw new Error('a WAV file without samples');
}

/**
 * dB below full scale of each 20 ms; −Infinity for silence. A partial last window counts.
 * @param stretch default all
 */
export async function levelsOf(pcm: PcmFile, signal: AbortSignal, stretch?: Stretch): Promise<Levels> {
  const { path, form = VOICE, dataAt } = pcm;
  const meter = new LevelMeter(form);
  const range = stretch && bytesOf(pcm, stretch);
  const bounds = range ? { start: range.at, end: range.at + range.bytes - 1 } : { start: dataAt };
  for await (const chunk of createReadStream(path, { ...bounds, highWaterMark: 256 * 1024, signal }))
    meter.push(chunk);
  return meter.end();
}

/** The same for a stream of speech, with the start and the number of its samples. */
export async function readLevels(
  wav: AsyncIterable<Buffer>,
): Promise<Pick<PcmFile, 'dataAt' | 'samples'> & { readonly levels: Levels }> {
  const meter = new LevelMeter(VOICE);
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
  readonly #form: PcmForm;
  readonly #fullScale: number;
  readonly #levels: number[] = [];
  /** Of one channel, complete ones. */
  samples = 0;
  #sum = 0;
  #frames = 0;
  #odd: Buffer = Buffer.alloc(0);

  constructor(form: PcmForm) {
    this.#form = form;
    this.#fullScale = 2 ** (8 * form.sampleBytes - 1);
  }

  push(chunk: Buffer): void {
    const { sampleBytes, windowSamples } = this.#form;
    const frame = frameBytes(this.#form);
    const bytes = this.#odd.length === 0 ? chunk : Buffer.concat([this.#odd, chunk]);
    const whole = bytes.length - (bytes.length % frame);
    for (let at = 0; at < whole; ) {
      const to = Math.min(whole, at + (windowSamples - this.#frames) * frame);
      this.#frames += (to - at) / frame;
      let sum = 0;
      if (sampleBytes === 2) for (; at < to; at += 2) sum += bytes.readInt16LE(at) ** 2;
      else for (; at < to; at += 3) sum += bytes.readIntLE(at, 3) ** 2;
      this.#sum += sum;
      if (this.#frames === windowSamples) this.#endWindow();
    }
    this.samples += whole / frame;
    this.#odd = bytes.subarray(whole);
  }

  end(): Levels {
    if (this.#frames > 0) this.#endWindow();
    return Float32Array.from(this.#levels);
  }

  #endWindow(): void {
    const mean = this.#sum / (this.#frames * this.#form.channels);
    this.#levels.push(10 * Math.log10(mean / this.#fullScale ** 2));
    this.#sum = 0;
    this.#frames = 0;
  }
}

/** The byte range of a stretch in the file. */
export function bytesOf(
  { dataAt, samples, form = VOICE }: Pick<PcmFile, 'dataAt' | 'samples' | 'form'>,
  { from, to }: Stretch,
): { readonly at: number; readonly bytes: number } {
  const window = form.windowSamples * frameBytes(form);
  const begin = from * window;
  return { at: dataAt + begin, bytes: Math.min(to * window, samples * frameBytes(form)) - begin };
}

/** Windows that fit a file of so many bytes. */
export function windowsWithin(bytes: number): number {
  return Math.floor((bytes - HEAD_BYTES) / (WINDOW_SAMPLES * frameBytes(VOICE)));
}

/** Writes stretches of one file, in order, to another. */
export async function writePcm(
  pcm: PcmFile,
  stretches: readonly Stretch[],
  target: string,
): Promise<PcmFile> {
  const { path, form, dataAt } = pcm;
  const parts = stretches.map((stretch) => bytesOf(pcm, stretch));
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  await using source = await open(path);
  await using sink = await open(target, 'w');
  const head = form === undefined ? wavHead(bytes) : await headFor(bytes, source, dataAt);
  await sink.write(head);
  const buffer = Buffer.alloc(COPIED_AT_ONCE);
  for (const part of parts) {
    for (let done = 0; done < part.bytes; ) {
      const wanted = Math.min(buffer.length, part.bytes - done);
      const { bytesRead } = await source.read(buffer, 0, wanted, part.at + done);
      if (bytesRead === 0) throw new Error('a WAV file became shorter while it was read');
      await sink.writeFile(buffer.subarray(0, bytesRead));
      done += bytesRead;
    }
  }
  const samples = bytes / frameBytes(form ?? VOICE);
  return { path: target, dataAt: head.length, samples, ...(form === undefined ? {} : { form }) };
}

/** A file's head with the size of other samples; 0, which is to the end, above 4 GiB. */
async function headFor(bytes: number, file: FileHandle, dataAt: number): Promise<Buffer> {
  const { buffer: head } = await file.read(Buffer.alloc(dataAt), 0, dataAt, 0);
  const isLarge = dataAt + bytes > 0xffffffff;
  // An RF64 keeps its sizes in a chunk of their own, which a RIFF leaves out.
  if (head.toString('latin1', 0, 4) === 'RF64') head.write('JUNK', 12, 'latin1');
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(isLarge ? 0 : dataAt - 8 + bytes, 4);
  head.writeUInt32LE(isLarge ? 0 : bytes, dataAt - 4);
  return head;
}

const HEAD_BYTES = 44;

/** A header for so many bytes of speech. 36 hours are less than the 4 GiB of a RIFF. */
export function wavHead(bytes: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(HEAD_BYTES - 8 + bytes, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(PCM_RATE, 24);
  head.writeUInt32LE(PCM_RATE * VOICE.sampleBytes, 28);
  head.writeUInt16LE(VOICE.sampleBytes, 32);
  head.writeUInt16LE(8 * VOICE.sampleBytes, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(bytes, 40);
  return head;
}
