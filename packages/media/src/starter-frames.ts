/** Messages between a Node process and the program that starts its tools, as in start.c. */

/** Kinds of frames. */
export const RUN = 1;
export const SIGNAL = 2;
export const FILTER = 3;
export const BEAT = 4;
export const STDOUT = 5;
export const STDERR = 6;
export const PROGRESS = 7;
export const ENDED = 8;
export const STARTED = 9;

/** Length of the message, kind, number of the run. */
const HEADER_BYTES = 12;

/** @param bytes a number: 32 bits */
export function frame(kind: number, number: number, bytes: Buffer | number): Buffer {
  const content = typeof bytes === 'number' ? number32(bytes) : bytes;
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(content.length, 0);
  header.writeUInt32LE(kind, 4);
  header.writeUInt32LE(number, 8);
  return Buffer.concat([header, content]);
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** @returns takes chunks in which frames come, whatever their lengths */
export function frameReader(
  onFrame: (kind: number, number: number, bytes: Buffer) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + rest.readUInt32LE(0);
      if (rest.length < end) break;
      const read = rest;
      rest = read.subarray(end);
      onFrame(read.readUInt32LE(4), read.readUInt32LE(8), read.subarray(HEADER_BYTES, end));
    }
  };
}
