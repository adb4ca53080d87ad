/** The outermost boxes of a segment's file (ISO/IEC 14496-12 section 4.2). */
import { LocalBytes } from '../../local-bytes.ts';
import { boxHeader, MAX_HEADER_BYTES, UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { type Part, readAt } from './part.ts';

export interface FileBox {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** Of a fragment's box: two hours of sound in one. */
export const MAX_FRAGMENT_BYTES = 4 * 1024 * 1024;
/** Of all segments: six hours in chunks of a fifth of a second, of up to four boxes each. */
export const MAX_BOXES = 400_000;

/** @throws UnsupportedLayout where one goes past the end, or its size cannot be */
export async function* boxesOf(file: Part['file'], sizeBytes: number): AsyncGenerator<FileBox> {
  const bytes = new LocalBytes(file);
  for (let start = 0; start < sizeBytes; ) {
    const header = boxHeader(await bytes.at(start, MAX_HEADER_BYTES));
    const end = header.sizeBytes === null ? sizeBytes : start + header.sizeBytes;
    if (end > sizeBytes) throw new UnsupportedLayout(`box ${header.type} goes past the end of its segment`);
    yield { type: header.type, start, end };
    start = end;
  }
}

/** With its header. @throws UnsupportedLayout when it is longer */
export async function readBox(
  file: Part['file'],
  { type, start, end }: FileBox,
  maxBytes: number,
): Promise<Buffer> {
  if (end - start > maxBytes) throw new UnsupportedLayout(`box ${type} of ${end - start} bytes`);
  return readAt(file, start, end - start);
}
