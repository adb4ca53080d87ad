/** What ffmpeg says while it runs, as it is read off its pipes. */
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
