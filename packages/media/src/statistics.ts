/** Reads what ffmpeg counted: the statistics that it writes at its end on level verbose, and ebur128's summary. */

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
