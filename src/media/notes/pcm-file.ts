/** WAV files of 16-bit mono PCM at 16 kHz, of which a run of voice notes is made: how loud they are, and parts of them. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Levels, type Stretch, WINDOWS_PER_SECOND } from './pauses.ts';

const PCM_RATE = 16_000;
export const WINDOW_SAMPLES = PCM_RATE / WINDOWS_PER_SECOND;
const SAMPLE_BYTES = 2;
const WINDOW_BYTES = WINDOW_SAMPLES * SAMPLE_BYTES;
const COPIED_AT_ONCE = 1024 * 1024;

export interface PcmFile {
  readonly path: string;
  /** Where its samples begin, bytes. */
  readonly dataAt: number;
  /** Of its one channel. */
  readonly samples: number;
}

/** @param path of a WAV file as ffmpeg writes it */
export async function openPcm(path: string): Promise<PcmFile> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const dataAt = await findData(file);
    return { path, dataAt, samples: Math.floor((size - dataAt) / SAMPLE_BYTES) };
  } finally {
    await file.close();
  }
}

/** Chunks have a name and a size (RIFF); RF64 only says elsewhere how long the last one is. */
async function findData(file: FileHandle): Promise<number> {
  const head = Buffer.alloc(8);
  let at = 12;
  for (;;) {
    const { bytesRead } = await file.read(head, 0, 8, at);
    if (bytesRead < 8) throw new Error('a WAV file without samples');
    at += 8;
    if (head.toString('latin1', 0, 4) === 'data') return at;
    at += head.readUInt32LE(4);
  }
}

/** dB below full scale of each 20 ms; −Infinity for silence. What is left at the end counts as a window. */
export async function levelsOf({ path, dataAt, samples }: PcmFile, signal: AbortSignal): Promise<Levels> {
  const levels = new Float32Array(Math.ceil(samples / WINDOW_SAMPLES));
  let window = 0;
  let sum = 0;
  let count = 0;
  const end = (): void => {
    levels[window] = 10 * Math.log10(sum / count / 32_768 ** 2);
    window += 1;
    sum = 0;
    count = 0;
  };
  let odd: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { start: dataAt, highWaterMark: 256 * 1024, signal })) {
    const bytes = odd.length === 0 ? (chunk as Buffer) : Buffer.concat([odd, chunk as Buffer]);
    let at = 0;
    for (; at + 1 < bytes.length; at += SAMPLE_BYTES) {
      sum += bytes.readInt16LE(at) ** 2;
      count += 1;
      if (count === WINDOW_SAMPLES) end();
    }
    odd = bytes.subarray(at);
  }
  if (count > 0) end();
  return levels;
}

/** Writes stretches of one file, one after the other, as another. */
export async function writePcm(
  { path, dataAt, samples }: PcmFile,
  stretches: readonly Stretch[],
  target: string,
): Promise<PcmFile> {
  const parts = stretches.map(({ from, to }) => ({
    at: from * WINDOW_BYTES,
    bytes: Math.min(to * WINDOW_BYTES, samples * SAMPLE_BYTES) - from * WINDOW_BYTES,
  }));
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const source = await open(path);
  const written = await open(target, 'w');
  try {
    await written.write(wavHead(bytes));
    const buffer = Buffer.alloc(COPIED_AT_ONCE);
    for (const part of parts) {
      for (let done = 0; done < part.bytes; ) {
        const wanted = Math.min(buffer.length, part.bytes - done);
        const { bytesRead } = await source.read(buffer, 0, wanted, dataAt + part.at + done);
        if (bytesRead === 0) throw new Error('a WAV file became shorter while it was read');
        await written.writeFile(buffer.subarray(0, bytesRead));
        done += bytesRead;
      }
    }
  } finally {
    await Promise.all([source.close(), written.close()]);
  }
  return { path: target, dataAt: HEAD_BYTES, samples: bytes / SAMPLE_BYTES };
}

const HEAD_BYTES = 44;

/** 36 hours of it are less than the 4 GiB of a RIFF. */
function wavHead(bytes: number): Buffer {
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
