/**
 * What ranges cost on a link: a gap is fetched along when that takes less time than asking once more, and parts are
 * only asked for when they save time.
 */
import { type BatchLimits, type ByteSpans, bytesOf } from './ranges-spans.ts';

interface Link {
  readonly bytesPerSecond: number;
  readonly roundTripSeconds: number;
}

/** What answers that came one at a time show of the link. */
export class LinkMeter {
  #bytes = 0;
  #seconds = 0;
  #roundTripSeconds = Number.POSITIVE_INFINITY;

  /** @param seconds that the body took; the waiting for it may include a new connection */
  add(bytes: number, seconds: number, waitedSeconds = Number.POSITIVE_INFINITY): void {
    this.#bytes += bytes;
    this.#seconds += seconds;
    this.#roundTripSeconds = Math.min(this.#roundTripSeconds, waitedSeconds);
  }

  get link(): Link {
    // Less than a packet in less than a millisecond shows nothing.
    const bytesPerSecond = Math.max(1_500, this.#bytes) / Math.max(1e-3, this.#seconds);
    return { bytesPerSecond, roundTripSeconds: Math.min(1, this.#roundTripSeconds) };
  }
}

/** A batch is what one request asks for. */
export interface RangeMode extends BatchLimits {
  /** Requests under way at the same time, each on a connection of its own. */
  readonly connections: number;
  /** What comes along with each range besides its bytes. */
  readonly overheadBytes: number;
  /** What a range takes of this machine: its request, its headers, its write. */
  readonly workSeconds: number;
}

const MIB = 1024 * 1024;

/**
 * `multiple`: Apache stops at 200 ranges, and most servers at 8 KB of a header. `single`: nginx's answer has 300 bytes
 * before the body, the request about as many. Work as measured, see docs/decisions/0010-sparse-fetch.md.
 */
export const rangeModes = {
  multiple: {
    connections: 6,
    ranges: 150,
    bytes: 4 * MIB,
    overheadBytes: 130,
    workSeconds: 12e-6,
  },
  single: {
    connections: 16,
    ranges: 1,
    bytes: 4 * MIB,
    overheadBytes: 300,
    workSeconds: 90e-6,
  },
} as const satisfies Record<string, RangeMode>;

/** What one more range adds. */
function secondsPerRange(link: Link, mode: RangeMode): number {
  const waiting = link.roundTripSeconds / (mode.connections * mode.ranges);
  return waiting + mode.overheadBytes / link.bytesPerSecond + mode.workSeconds;
}

/** The longest gap that is cheaper fetched than left out. */
export function worthwhileGap(link: Link, mode: RangeMode): number {
  return Math.floor(secondsPerRange(link, mode) * link.bytesPerSecond);
}

/** Probing the local file, and the requests that find out how the server takes ranges. */
const FIXED_SECONDS = 0.2;
const FIXED_ROUND_TRIPS = 4;

/** Below it the estimate is not sure enough to change how a file is fetched. */
const LEAST_GAIN = 0.3;

/** Whether the spans take clearly less time than the whole file. @param leastGain the share of the whole file's time that parts have to save */
export function isWorthwhile(
  spans: ByteSpans,
  wholeBytes: number,
  link: Link,
  mode: RangeMode,
  leastGain = LEAST_GAIN,
): boolean {
  const parts = bytesOf(spans) / link.bytesPerSecond + spans.starts.length * secondsPerRange(link, mode);
  const fixed = FIXED_SECONDS + FIXED_ROUND_TRIPS * link.roundTripSeconds;
  return parts + fixed <= (1 - leastGain) * (wholeBytes / link.bytesPerSecond);
}
