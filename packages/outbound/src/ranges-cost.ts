/**
 * The cost of ranges on a link. A gap is fetched too if that is faster than another range, and
 * parts are fetched only if they save time.
 */
import { type BatchLimits, type ByteSpans, bytesOf } from './ranges-spans.ts';

interface Link {
  readonly bytesPerSecond: number;
  readonly roundTripSeconds: number;
}

/** Measures the link by answers that came one at a time. */
export class LinkMeter {
  #bytes = 0;
  #seconds = 0;
  #roundTripSeconds = Number.POSITIVE_INFINITY;

  /** @param seconds for the body; `waitedSeconds` may include a new connection */
  add(bytes: number, seconds: number, waitedSeconds = Number.POSITIVE_INFINITY): void {
    this.#bytes += bytes;
    this.#seconds += seconds;
    this.#roundTripSeconds = Math.min(this.#roundTripSeconds, waitedSeconds);
  }

  get link(): Link {
    // Less than a packet in less than a millisecond says nothing.
    const bytesPerSecond = Math.max(1_500, this.#bytes) / Math.max(1e-3, this.#seconds);
    return { bytesPerSecond, roundTripSeconds: Math.min(1, this.#roundTripSeconds) };
  }
}

/** A batch is one request. */
export interface RangeMode extends BatchLimits {
  /** Concurrent requests, each on its own connection. */
  readonly connections: number;
  /** Bytes per range besides its own. */
  readonly overheadBytes: number;
  /** This machine's work per range: request, headers, write. */
  readonly workSeconds: number;
}

const MIB = 1024 * 1024;

/**
 * `multiple`: Apache allows 200 ranges, most servers 8 KB per header. `single`: nginx's answer has
 * 300 bytes of headers, the request about as many. Work: docs/decisions/0010-sparse-fetch.md.
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

/** Cost of one more range. */
function secondsPerRange(link: Link, mode: RangeMode): number {
  const waiting = link.roundTripSeconds / (mode.connections * mode.ranges);
  return waiting + mode.overheadBytes / link.bytesPerSecond + mode.workSeconds;
}

/** The longest gap that is cheaper to fetch than to leave out. */
export function worthwhileGap(link: Link, mode: RangeMode): number {
  return Math.floor(secondsPerRange(link, mode) * link.bytesPerSecond);
}

/** Probing the local file, and finding out how the server handles ranges. */
const FIXED_SECONDS = 0.2;
const FIXED_ROUND_TRIPS = 4;

/** Below this, the estimate is too uncertain to change how a file is fetched. */
const LEAST_GAIN = 0.3;

/** Whether the spans save the share `leastGain` of the whole file's time. */
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
