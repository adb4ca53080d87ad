/** Splits an object into parts (Amazon S3 User Guide, "Amazon S3 multipart upload limits"). */

import type { Readable } from 'node:stream';

const MIB = 1024 * 1024;
/** Minimum for every part but the last. */
export const LEAST_PART_BYTES = 5 * MIB;
const MOST_PARTS = 10_000;
/** Largest object, bytes. */
export const MOST_OBJECT_BYTES = 5 * 1024 ** 4;

/**
 * Part size of an object, bytes: the smallest, in whole MiB, for at most 10,000 parts.
 * @throws RangeError if no S3 server can store the object
 */
export function partBytesFor(objectBytes: number): number {
  if (!(objectBytes >= 0 && objectBytes <= MOST_OBJECT_BYTES)) {
    throw new RangeError(
      `an object of ${objectBytes} bytes does not fit S3, which ends at 5 TiB; lower MAX_INPUT_BYTES`,
    );
  }
  const wholeMib = Math.ceil(objectBytes / MOST_PARTS / MIB) * MIB;
  return Math.max(LEAST_PART_BYTES, wholeMib);
}

// Splits a stream into parts: one part fills while the previous one is sent.

interface Cut {
  readonly partBytes: number;
  /** From the first byte of the first piece to the end of the upload, where its last part ends. */
  readonly wholeBytes: number;
  /** Stores a whole part. Calls are sequential. */
  readonly send: (part: Buffer) => Promise<void>;
  /** Stores the rest of the stream, if it is less than a part. */
  readonly keep: (rest: Buffer) => Promise<void>;
}

/**
 * Resolves when everything is stored. If the stream fails, received bytes are stored before its
 * error is thrown; if storing fails, the stream is given up. Holds two parts in memory at most.
 * @param before beginning of the first part, already stored
 */
export async function inParts(before: Buffer, content: Readable, cut: Cut): Promise<void> {
  const { partBytes, send, keep } = cut;
  let leftBytes = cut.wholeBytes;
  let piece: Buffer = Buffer.allocUnsafeSlow(Math.min(partBytes, leftBytes));
  let filled = before.copy(piece);
  let onItsWay: { readonly piece: Buffer; readonly sent: Promise<void> } | undefined;
  let isStored = true;

  const settle = async (): Promise<void> => {
    await onItsWay?.sent;
    if (!isStored) await keep(piece.subarray(0, filled));
  };

  const next = async (): Promise<void> => {
    await onItsWay?.sent;
    const spare = onItsWay?.piece;
    const sent = send(piece);
    // Awaited before the next part is sent; unhandled until then.
    sent.catch(() => undefined);
    onItsWay = { piece, sent };
    leftBytes -= piece.length;
    const wanted = Math.min(partBytes, leftBytes);
    piece = spare === undefined ? Buffer.allocUnsafeSlow(wanted) : spare.subarray(0, wanted);
    filled = 0;
    isStored = true;
  };

  try {
    for await (const chunk of content) {
      for (let at = 0; at < chunk.length; ) {
        if (piece.length === 0) throw new RangeError('more has come than the upload was said to have');
        const copied = chunk.copy(piece, filled, at);
        at += copied;
        filled += copied;
        isStored = false;
        if (filled === piece.length) await next();
      }
    }
  } catch (error) {
    await settle().catch(() => undefined);
    throw error;
  }
  await settle();
}
