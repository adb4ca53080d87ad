/**
 * What a JSON text would become is looked at before it is parsed: a few megabytes of brackets or of empty objects take some
 * hundred times their size as values, and no request of ours needs either.
 */
import { isUtf8 } from 'node:buffer';

const DEEPEST = 64;
const MOST_VALUES = 100_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/**
 * For `verify` of express.json. Throws an error of the type `charset.unsupported` for another encoding than UTF-8 (RFC 8259, 8.1),
 * and `json.odd`, with what is wrong as its message, where the text is not valid UTF-8, is nested deeper than 64 levels, or has
 * more than 100,000 values. Whether it is JSON is left to the parser.
 */
export function verifyJson(_request: unknown, _response: unknown, text: Buffer, encoding: string): void {
  if (encoding.toLowerCase() !== 'utf-8') {
    throw fault('charset.unsupported', 'the body must be UTF-8');
  }
  if (!isUtf8(text)) {
    throw fault('json.odd', 'the body is not valid UTF-8');
  }
  let depth = 0;
  let values = 1;
  for (let index = 0; index < text.length; index += 1) {
    const byte = text[index] ?? 0;
    if (byte === QUOTE) {
      index = endOfString(text, index);
    } else if (CLOSING.has(byte)) {
      depth -= 1;
    } else if (byte === COMMA || OPENING.has(byte)) {
      values += 1;
      depth += byte === COMMA ? 0 : 1;
      if (depth > DEEPEST || values > MOST_VALUES) {
        throw fault(
          'json.odd',
          `the body may be nested ${DEEPEST} levels deep and have ${MOST_VALUES} values at most`,
        );
      }
    }
  }
}

/** express passes on what is thrown, and both applications tell its faults by `type`. */
function fault(type: string, message: string): Error {
  return Object.assign(new Error(message), { type });
}

/** Where the closing quote is; the end of the text where there is none. A string is the bulk of most bodies, so it is searched, not walked. */
function endOfString(text: Buffer, start: number): number {
  for (let end = text.indexOf(QUOTE, start + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === BACKSLASH) {
      backslashes += 1;
    }
    if (backslashes % 2 === 0) {
      return end;
    }
  }
  return text.length;
}
