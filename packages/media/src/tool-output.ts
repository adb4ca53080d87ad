/**
 * What ffmpeg says while it runs, as it is read off its pipes, how far that makes the whole, and
 * what it has counted at its end, on level verbose.
 */
import { StringDecoder } from 'node:string_decoder';

export interface Progress {
  /** How far the outputs have come, seconds; undefined while nothing is out. */
  readonly outSeconds: number | undefined;
}

const STDERR_BYTES = 64 * 1024;

/** The last 64 KiB of what was written to standard error. */
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
 * @returns takes what was written, in pieces as they come
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
  /** The report of one of several works, which fills that part of the whole. */
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
      // A container that says nothing about its length leaves nothing to divide by.
      if (expectedSeconds !== null && expectedSeconds > 0) {
        report(from + (to - from) * Math.min(1, seconds / expectedSeconds));
      }
    },
    part: (from, to, seconds) => progressReport(seconds, (fraction) => report(from + (to - from) * fraction)),
    done: () => report(1),
  };
}

/** `[graph_0_in_0_1 @ 0x55b4] tb:1/48000 samplefmt:fltp …`: an input of a graph, with its number in it, is set up. */
const GRAPH_INPUT = /^\[(graph_\w+_in_\S+) @ \w+\] tb:/;
/** Longer than what is looked at of a line. */
const LINE_START = 256;

/**
 * ffmpeg sets a graph up anew where the frames that go into it change. 5.1 says nothing else of it.
 * @param onRebuilt told each time that a graph is set up anew
 * @returns takes what was written to standard error, in pieces as they come
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
  /** Samples of one channel; undefined where nothing was decoded or encoded. */
  readonly samples: number | undefined;
}

// `Output stream #1:0 (audio): 150 frames encoded (172032 samples); 151 packets muxed (57984 bytes);`
const OUTPUT =
  /Output stream #(\d+):\d+ \(audio\): (?:\d+ frames encoded(?: \((\d+) samples\))?; )?(\d+) packets muxed \((\d+) bytes\)/g;

/** What went into an output's audio, by the output's place in the command. Tags could spell such a line: the last one counts. */
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
 * Samples of one channel that were decoded of a stream; undefined where none were.
 * @param stream its input and its place there, such as `0:1`
 */
export function decodedSamples(stderr: string, stream: string): number | undefined {
  const match = [...stderr.matchAll(INPUT)].findLast(([, name]) => name === stream);
  return match === undefined ? undefined : Number(match[2]);
}

interface MeasuredLoudness {
  /** Integrated loudness (ITU-R BS.1770), LUFS; null for silence and for less than a gating block of 0.4 s. */
  readonly lufs: number | null;
  /** The highest peak: of the samples in dBFS, or true peak in dBTP, as it was measured for; null for digital silence, and where none was. */
  readonly peakDb: number | null;
}

const INTEGRATED = /^\s+I:\s+(\S+) LUFS$/gm;
const PEAK = /^\s+Peak:\s+(\S+) dBFS$/gm;

/** ebur128 reports −70 LUFS, its absolute gate, where nothing passed it. */
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
