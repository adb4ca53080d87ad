/** What ffmpeg says while it runs, as it is read off its pipes. */
import type { Readable } from 'node:stream';

export interface Progress {
  /** How far the outputs have come, seconds; undefined while nothing is out. */
  readonly outSeconds: number | undefined;
}

const STDERR_BYTES = 64 * 1024;

/** Reads standard error to the end, so that the tool never blocks on it, and keeps the last 64 KiB of it. */
export function keepTail(stderr: Readable | null): () => string {
  let tail = Buffer.alloc(0);
  stderr?.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]);
    if (tail.length > STDERR_BYTES) tail = tail.subarray(tail.length - STDERR_BYTES);
  });
  return () => tail.toString('utf8');
}

/** `-progress` writes blocks of `key=value` lines, each closed by a `progress=` line. */
export function watchProgress(stream: Readable, report: (progress: Progress) => void): void {
  stream.setEncoding('utf8');
  let rest = '';
  let outSeconds: number | undefined;
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [key, value] = line.split('=', 2);
      if (key === 'out_time_us') {
        // "N/A" before the first packet.
        const seconds = Number(value) / 1_000_000;
        if (Number.isFinite(seconds)) outSeconds = Math.max(0, seconds);
      } else if (key === 'progress') {
        report({ outSeconds });
      }
    }
  });
}
