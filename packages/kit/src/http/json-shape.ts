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
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACKET = 0x5d;
const CLOSING_BRACE = 0x7d;

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
    switch (text[index]) {
      case QUOTE:
        index = endOfString(text, index);
        break;
      case CLOSING_BRACKET:
      case CLOSING_BRACE:
        depth -= 1;
        break;
      case OPENING_BRACKET:
      case OPENING_BRACE:
        depth += 1;
        values += 1;
        break;
      case COMMA:
        values += 1;
        break;
      default:
    }
    if (depth > DEEPEST || values > MOST_VALUES) {
      throw fault(
        'json.odd',
        `the body may be nested ${DEEPEST} levels deep and have ${MOST_VALUES} values at most`,
      );
    }
  }
}

/** express passes on what is thrown, and both applications tell its faults by `type`. */
/** With a status, which body-parser gives to its own alone: the plain way of json-body.ts throws it as it is. */
function fault(type: string, message: string): Error {
  return Object.assign(new Error(message), { type, status: 400 });
}

/** Where the closing quote is; the end of the text where there is none. A long string is searched, and walked only where it has escapes. */
function endOfString(text: Buffer, start: number): number {
  const quote = text.indexOf(QUOTE, start + 1);
  if (quote === -1 || text[quote - 1] !== BACKSLASH) {
    return quote === -1 ? text.length : quote;
  }
  let index = start + 1;
  while (index < text.length && text[index] !== QUOTE) {
    index += text[index] === BACKSLASH ? 2 : 1;
  }
  return index;
}
