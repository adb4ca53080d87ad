/** How an object is cut into parts (Amazon S3 User Guide, "Amazon S3 multipart upload limits"). */

import type { Readable } from 'node:stream';

const MIB = 1024 * 1024;
/** Every part but the last one has at least so much. */
export const LEAST_PART_BYTES = 5 * MIB;
const MOST_PARTS = 10_000;
/** The largest object, bytes. */
export const MOST_OBJECT_BYTES = 5 * 1024 ** 4;

/**
 * Size of the parts of an object of that size, bytes: the least that makes do with 10,000 parts, in whole MiB.
 * @throws RangeError when no S3 server could hold the object
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

// A stream cut into pieces for the parts of an upload: one piece is filled while the one before it
// is on its way.

interface Cut {
  readonly partBytes: number;
  /** From the first byte of the first piece to the end of the upload: its last part ends there. */
  readonly wholeBytes: number;
  /** Stores a piece that makes a part. Called for one after the other. */
  readonly send: (part: Buffer) => Promise<void>;
  /** Stores what is left at the end of the stream, where it makes no part. */
  readonly keep: (rest: Buffer) => Promise<void>;
}

/**
 * Resolves when everything is stored. When the stream fails, what had come is stored all the same before its error is thrown; when storing fails, the stream
 * is given up. Takes the memory of two parts at most.
 * @param before what the first piece begins with, stored already
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
    // Looked at before the next piece is sent; until then nobody waits for it.
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
