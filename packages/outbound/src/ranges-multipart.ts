/**
 * Parses multipart/byteranges (RFC 9110 §14.6, RFC 2046 §5.1.1). Each part states its place, so
 * its length is known, and its bytes are never searched for the boundary.
 */
import { OutboundFailed } from './errors.ts';
import type { ByteSpan } from './ranges-spans.ts';

/** Bytes and their position in the file. */
export interface Piece {
  readonly start: number;
  readonly bytes: Uint8Array;
}

/** Boundary, Content-Type and Content-Range take about a hundred. */
const MAX_PART_HEAD_BYTES = 2 * 1_024;

/** Upper limit for the bytes of so many parts besides their content. */
export function multipartOverhead(parts: number): number {
  return (parts + 1) * MAX_PART_HEAD_BYTES;
}

/** The boundary of a Content-Type; undefined if it is not multipart/byteranges. */
export function byterangesBoundary(contentType: string | undefined): string | undefined {
  const type = /^multipart\/(?:x-)?byteranges\s*;(.*)$/i.exec(contentType ?? '')?.[1];
  // RFC 2046 §5.1.1: at most 70 characters of this set; quoted if there are spaces and the like.
  const match = /(?:^|;)\s*boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'+.-]{1,70}))\s*(?:;|$)/i.exec(
    type ?? '',
  );
  return match?.[1] ?? match?.[2];
}

export class ByterangesReader {
  readonly #delimiter: string;
  readonly #totalBytes: number;
  /** Ends of the parts still to come, by their starts. */
  readonly #awaited: Map<number, number>;
  #rest: Buffer = Buffer.alloc(0);
  /** The part being read. */
  #part: { at: number; end: number } | undefined;
  #isOver = false;

  /** @param asked each must come as its own part, in any order (RFC 9110 §15.3.7.2) */
  constructor(boundary: string, asked: readonly ByteSpan[], totalBytes: number) {
    this.#delimiter = `--${boundary}`;
    this.#totalBytes = totalBytes;
    this.#awaited = new Map(asked.map(({ start, end }) => [start, end]));
  }

  /** @throws OutboundFailed (protocol) for anything but the requested parts */
  push(chunk: Uint8Array): Piece[] {
    const pieces: Piece[] = [];
    let bytes = this.#rest.length === 0 ? asBuffer(chunk) : Buffer.concat([this.#rest, chunk]);
    while (bytes.length > 0 && !this.#isOver) {
      const used =
        this.#part === undefined ? this.#readHead(bytes) : this.#readBytes(bytes, this.#part, pieces);
      if (used === 0) break;
      bytes = bytes.subarray(used);
    }
    // The epilogue is ignored (RFC 2046 §5.1.1).
    this.#rest = this.#isOver ? Buffer.alloc(0) : bytes;
    return pieces;
  }

  /** Whether the closing delimiter and all requested parts have arrived. */
  get isWhole(): boolean {
    return this.#isOver && this.#awaited.size === 0;
  }

  /** Call this at the end of the body. @throws OutboundFailed (protocol) if something is missing */
  end(): void {
    if (!this.isWhole) throw malformed('parts are missing');
  }

  #readBytes(bytes: Buffer, part: { at: number; end: number }, pieces: Piece[]): number {
    const piece = bytes.subarray(0, part.end - part.at);
    pieces.push({ start: part.at, bytes: piece });
    part.at += piece.length;
    if (part.at === part.end) this.#part = undefined;
    return piece.length;
  }

  /** @returns the length of a part's head; 0 if it is incomplete */
  #readHead(bytes: Buffer): number {
    // The line break before a delimiter belongs to it; the first delimiter may lack it.
    const from = bytes[0] === 0x0d ? 2 : 0;
    const lineEnd = from + this.#delimiter.length + 2;
    if (bytes.length < lineEnd) return 0;
    const line = bytes.toString('latin1', 0, lineEnd);
    if (!line.startsWith(this.#delimiter, from) || (from === 2 && !line.startsWith('\r\n'))) {
      throw malformed('no boundary where one has to be');
    }
    if (line.endsWith('--')) {
      this.#isOver = true;
      return lineEnd;
    }
    const headEnd = bytes.subarray(0, MAX_PART_HEAD_BYTES).indexOf('\r\n\r\n', lineEnd - 2, 'latin1');
    if (headEnd === -1) {
      if (bytes.length >= MAX_PART_HEAD_BYTES) throw malformed('a part with a long head');
      return 0;
    }
    const head = bytes.toString('latin1', lineEnd - 2, headEnd + 2);
    if (!/^[ \t]*\r\n/.test(head)) throw malformed('no line end after a boundary');
    this.#part = this.#partOf(head);
    return headEnd + 4;
  }

  #partOf(head: string): { at: number; end: number } {
    const ranges = [
      ...head.matchAll(/\r\ncontent-range:[ \t]*bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})[ \t]*(?=\r\n)/gi),
    ];
    const [range] = ranges;
    if (range === undefined || ranges.length > 1) throw malformed('a part that does not say where it lies');
    const at = Number(range[1]);
    const end = Number(range[2]) + 1;
    if (Number(range[3]) !== this.#totalBytes || this.#awaited.get(at) !== end) {
      throw malformed('a part that was not asked for');
    }
    this.#awaited.delete(at);
    return { at, end };
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function malformed(what: string): OutboundFailed {
  return new OutboundFailed('protocol', 'the server did not send the requested parts', false, {
    cause: new Error(what),
  });
}
