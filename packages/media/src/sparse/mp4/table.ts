/** Tables of a full box (ISO/IEC 14496-12 section 4.2: version and flags first), whose row count has to fit the box. */
import { type Box, UnsupportedLayout, viewOf } from './boxes.ts';

/** Two hours of sound in packets of 21 ms are 0.34 million samples; a chunk each makes as many chunks. */
export const MAX_ROWS = 4_000_000;

export interface Table {
  readonly rows: number;
  readonly view: DataView;
  /** Where the first row stands. */
  readonly at: number;
}

/**
 * A box that holds its row count and rows of one size.
 * @param headBytes where the count stands: after version and flags, and what else the box has before it
 * @param rowBits of one row
 * @param betweenBytes what stands between the count and the first row
 * @throws UnsupportedLayout when there are too many rows, or fewer than it says
 */
export function tableOf({ type, payload }: Box, rowBits: number, headBytes = 4, betweenBytes = 0): Table {
  const view = viewOf(payload);
  const at = headBytes + 4 + betweenBytes;
  if (payload.length < at) throw new UnsupportedLayout(`box ${type} breaks off`);
  const rows = view.getUint32(headBytes);
  if (rows > MAX_ROWS) throw new UnsupportedLayout(`box ${type} has ${rows} rows`);
  if (Math.ceil((rows * rowBits) / 8) > payload.length - at) {
    throw new UnsupportedLayout(`box ${type} does not hold its ${rows} rows`);
  }
  return { rows, view, at };
}
