/** A body of several ranges: read in whatever pieces it comes, and only when it is exactly what was asked for. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { OutboundFailed } from '../src/errors.ts';
import { ByterangesReader, byterangesBoundary } from '../src/ranges-multipart.ts';

const TOTAL = 1000;
const file = Buffer.from(Array.from({ length: TOTAL }, (_, at) => at % 251));
const ASKED = [
  { start: 10, end: 20 },
  { start: 100, end: 101 },
  { start: 500, end: 750 },
];

/** As Apache and nginx write it. */
function part(start: number, end: number, total: number | string = TOTAL): string {
  const bytes = file.toString('latin1', start, end);
  return `\r\n--B\r\nContent-Type: video/mp4\r\nContent-Range: bytes ${start}-${end - 1}/${total}\r\n\r\n${bytes}`;
}

const parts = ASKED.map(({ start, end }) => part(start, end));
const END = '\r\n--B--\r\n';

function readAll(body: string, sliceBytes: readonly number[] = []): Buffer {
  const reader = new ByterangesReader('B', ASKED, TOTAL);
  const bytes = Buffer.from(body, 'latin1');
  const local = Buffer.alloc(TOTAL);
  let at = 0;
  for (const size of [...sliceBytes, bytes.length]) {
    for (const piece of reader.push(bytes.subarray(at, at + size))) local.set(piece.bytes, piece.start);
    at += size;
  }
  reader.end();
  return local;
}

const wanted = Buffer.alloc(TOTAL);
for (const { start, end } of ASKED) file.copy(wanted, start, start, end);

describe('what was asked for', () => {
  it('is read in whatever pieces it comes', () => {
    const slices = fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 60 });
    fc.assert(
      fc.property(slices, (sliceBytes) => {
        expect(readAll([...parts, END].join(''), sliceBytes)).toEqual(wanted);
      }),
    );
  });

  it.each([
    ['in another order', [...parts].reverse().join('') + END],
    ['without a line break before the first boundary, as Go writes it', [...parts, END].join('').slice(2)],
    ['with white space after a boundary', [...parts, END].join('').replace('--B\r\n', '--B \t\r\n')],
    [
      'with headers in any case and number',
      [...parts, END].join('').replace('Content-Range:', 'X-A: b\r\ncontent-RANGE:'),
    ],
    ['without a line break at the end', [...parts, '\r\n--B--'].join('')],
    ['with something after the end', `${[...parts, END].join('')}--B\r\nand more`],
  ])('%s', (_name, body) => {
    expect(readAll(body)).toEqual(wanted);
  });

  it('is not searched for the boundary', () => {
    const reader = new ByterangesReader('B', [{ start: 0, end: 14 }], 14);
    const bytes = 'a\r\n--B--\r\n--B\r';
    const head = '--B\r\nContent-Range: bytes 0-13/14\r\n\r\n';
    const pieces = reader.push(Buffer.from(head + bytes + END, 'latin1'));
    reader.end();
    expect(Buffer.concat(pieces.map((piece) => piece.bytes)).toString('latin1')).toBe(bytes);
  });
});

describe('anything else is refused', () => {
  const [first = '', second = '', third = ''] = parts;
  it.each([
    ['nothing', ''],
    ['a part too few', first + second + END],
    ['a part twice', first + first + second + third + END],
    ['a part that nobody asked for', first + second + third + part(800, 810) + END],
    ['a part that begins elsewhere', part(11, 20) + second + third + END],
    ['a part that ends elsewhere', part(10, 19) + second + third + END],
    ['a part of a file of another size', part(10, 20, 1001) + second + third + END],
    ['a part of a file of unknown size', part(10, 20, '*') + second + third + END],
    [
      'a part that does not say where it lies',
      first.replace(/Content-Range.*\r\n/, '') + second + third + END,
    ],
    ['a part that says it twice', first.replace(/(Content-Range.*\r\n)/, '$1$1') + second + third + END],
    ['a part that is shorter than it says', first.slice(0, -1) + second + third + END],
    ['a part that is longer than it says', `${first}x${second}${third}${END}`],
    ['no end', first + second + third],
    ['an end that breaks off', `${first}${second}${third}\r\n--B-`],
    ['a head that breaks off', first + second + third.slice(0, 30)],
    ['another boundary', [...parts, END].join('').replaceAll('--B', '--C')],
    ['a boundary that goes on', [...parts, END].join('').replace('--B\r\n', '--Bee\r\n')],
    ['something before the first boundary', `hello${first}${second}${third}${END}`],
    ['a head without an end', `\r\n--B\r\n${'X-A: b\r\n'.repeat(1000)}`],
  ])('%s', (_name, body) => {
    expect(() => readAll(body)).toThrow(OutboundFailed);
    expect(() => readAll(body, Array(body.length).fill(1))).toThrow(OutboundFailed);
  });
});

test.each([
  ['multipart/byteranges; boundary=3d6b6a416f9b5', '3d6b6a416f9b5'],
  ['multipart/byteranges; boundary="a (b):c"', 'a (b):c'],
  ['Multipart/X-Byteranges;charset=utf-8;BOUNDARY=x', 'x'],
  ['multipart/byteranges', undefined],
  ['multipart/byteranges; boundary=', undefined],
  [`multipart/byteranges; boundary=${'x'.repeat(71)}`, undefined],
  ['multipart/form-data; boundary=x', undefined],
  ['video/mp4', undefined],
  [undefined, undefined],
])('the boundary of %s is %s', (contentType, boundary) => {
  expect(byterangesBoundary(contentType)).toBe(boundary);
});
