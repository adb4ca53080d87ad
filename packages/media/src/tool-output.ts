/**
 * ffmpeg's output while it runs: its progress, how much of the whole that is, and its statistics at
 * the end, on level verbose.
 */
import { StringDecoder } from 'node:string_decoder';

export interface Progress {
  /** How far the outputs have come, seconds; undefined before the first. */
  readonly outSeconds: number | undefined;
}

/** A kilobyte for each of three measurements of 32 outputs stands behind the statistics. */
const STDERR_BYTES = 256 * 1024;

/** The last 256 KiB of standard error. */
export class Tail {
  #bytes: Buffer = Buffer.alloc(0);

  add(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (this.#bytes.length > STDERR_BYTES) this.#bytes = this.#bytes.subarray(-STDERR_BYTES);
  }

  get text(): string {
    return this.#bytes.toString('utf8');
  }
}

/**
 * `-progress` writes blocks of `key=value` lines, each closed by a `progress=` line.
 * @returns a function that takes the output in chunks
 */
export function progressReader(report: (progress: Progress) => void): (bytes: Buffer) => void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let outSeconds: number | undefined;
  return (bytes) => {
    const lines = (rest + decoder.write(bytes)).split('\n');
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
  };
}

/** One fraction over all the runs that an extraction takes. */
interface ProgressReport {
  /** A callback for one run's seconds, which fills the part of the whole from `from` to `to`. */
  phase(from: number, to: number): (seconds: number) => void;
  /** Progress of one of several tasks, which is that part of the total. */
  part(from: number, to: number, expectedSeconds: number | null): ProgressReport;
  done(): void;
}

export function progressReport(
  expectedSeconds: number | null,
  onProgress: ((fraction: number) => void) | undefined,
): ProgressReport {
  let reached = 0;
  const report = (fraction: number) => {
    if (!(fraction > reached)) return;
    reached = Math.min(1, fraction);
    onProgress?.(reached);
  };
  return {
    phase: (from, to) => (seconds) => {
      // Without a declared length there is nothing to divide by.
      if (expectedSeconds !== null && expectedSeconds > 0) {
        report(from + (to - from) * Math.min(1, seconds / expectedSeconds));
      }
    },
    part: (from, to, seconds) => progressReport(seconds, (fraction) => report(from + (to - from) * fraction)),
    done: () => report(1),
  };
}

/** `[graph_0_in_0_1 @ 0x55b4] tb:1/48000 samplefmt:fltp …`: a graph's input is set up. */
const GRAPH_INPUT = /^\[(graph_\w+_in_\S+) @ \w+\] tb:/;
/** Longer than the part of a line that is read. */
const LINE_START = 256;

/**
 * ffmpeg rebuilds a graph when its frames change format. 5.1 logs nothing else about it.
 * @param onRebuilt called each time that a graph is rebuilt
 * @returns a function that takes standard error in chunks
 */
export function graphReader(onRebuilt: () => void): (bytes: Buffer) => void {
  const decoder = new StringDecoder('utf8');
  const inputs = new Set<string>();
  let rest = '';
  return (bytes) => {
    const lines = (rest + decoder.write(bytes)).split('\n');
    rest = (lines.pop() ?? '').slice(0, LINE_START);
    for (const line of lines) {
      const name = GRAPH_INPUT.exec(line)?.[1];
      if (name === undefined) continue;
      if (inputs.has(name)) onRebuilt();
      inputs.add(name);
    }
  };
}

// Statistics, and ebur128's summary.

interface TrackStatistics {
  readonly packets: number;
  /** Bytes of the packets alone, without container, tags and cover. */
  readonly bytes: number;
  /** Samples of one channel; undefined if nothing was decoded or encoded. */
  readonly samples: number | undefined;
}

// `Output stream #1:0 (audio): 150 frames encoded (172032 samples); 151 packets muxed (57984
// bytes);`
const OUTPUT =
  /Output stream #(\d+):\d+ \(audio\): (?:\d+ frames encoded(?: \((\d+) samples\))?; )?(\d+) packets muxed \((\d+) bytes\)/g;

/** An output's audio, by its index in the command. Tags could fake such a line: the last counts. */
export function outputStatistics(stderr: string, output: number): TrackStatistics | undefined {
  const match = [...stderr.matchAll(OUTPUT)].findLast(([, place]) => Number(place) === output);
  if (match === undefined) return undefined;
  const [, , samples, packets, bytes] = match;
  return {
    packets: Number(packets),
    bytes: Number(bytes),
    samples: samples === undefined ? undefined : Number(samples),
  };
}

// `Input stream #0:1 (audio): 169 packets read (57361 bytes); 168 frames decoded (172032 samples);`
const INPUT =
  /Input stream #(\d+:\d+) \(audio\): \d+ packets read \(\d+ bytes\); \d+ frames decoded[^(\n]*\((\d+) samples\)/g;

/**
 * Samples of one channel that were decoded of a stream; undefined if none were.
 * @param stream its input and its index there, such as `0:1`
 */
export function decodedSamples(stderr: string, stream: string): number | undefined {
  const match = [...stderr.matchAll(INPUT)].findLast(([, name]) => name === stream);
  return match === undefined ? undefined : Number(match[2]);
}

interface MeasuredLoudness {
  /** Integrated loudness (ITU-R BS.1770), LUFS; null for silence, and for less than 0.4 s. */
  readonly lufs: number | null;
  /** The highest peak, dBFS of samples or dBTP; null for digital silence, and if not measured. */
  readonly peakDb: number | null;
}

const INTEGRATED = /^\s+I:\s+(\S+) LUFS$/gm;
// ebur128 ends this line in another call, so a thread of ffmpeg 7 may have added its own text.
const PEAK = /^\s+Peak:\s+(\S+) dBFS/gm;

/** ebur128 reports −70 LUFS, its absolute gate, if nothing passed it. */
const GATE_LUFS = -70;

export function loudnessSummary(stderr: string): MeasuredLoudness {
  const lufs = lastNumber(stderr, INTEGRATED);
  return {
    lufs: lufs === null || lufs <= GATE_LUFS ? null : lufs,
    peakDb: lastNumber(stderr, PEAK),
  };
}

function lastNumber(text: string, pattern: RegExp): number | null {
  const value = Number([...text.matchAll(pattern)].at(-1)?.[1] ?? Number.NaN);
  return Number.isFinite(value) ? value : null;
}
