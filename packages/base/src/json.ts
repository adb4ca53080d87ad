/**
 * JSON that others wrote, checked before it is parsed: a few megabytes of brackets or empty objects
 * become some hundred times larger as values, and no valid request or answer needs that.
 */

const DEEPEST = 64;
const MOST_VALUES = 100_000;
/** An answer; readers of requests have limits of their own. */
const MOST_BYTES = 16 * 1024 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACKET = 0x5d;
const CLOSING_BRACE = 0x7d;

/** The message says which limit was passed, and holds nothing of the text. */
export class OddJson extends Error {
  override readonly name = 'OddJson';
}

interface JsonLimits {
  /** Default 16 MiB. */
  readonly maxBytes?: number;
  /** Objects, arrays, and whatever stands between commas; default 100,000. */
  readonly maxValues?: number;
}

/**
 * The only way to parse what another party wrote (test/house/outside-json.test.ts).
 * @throws OddJson before anything is parsed, if it passes a limit; SyntaxError if it is no JSON
 */
export function parseJson(
  text: string,
  { maxBytes = MOST_BYTES, maxValues = MOST_VALUES }: JsonLimits = {},
): unknown {
  // No character has fewer bytes than code units: what is far too long is not copied.
  const bytes = text.length > maxBytes ? undefined : Buffer.from(text);
  if (bytes === undefined || bytes.length > maxBytes) {
    throw new OddJson(`it may have ${maxBytes} bytes at most`);
  }
  checkShape(bytes, maxValues);
  return JSON.parse(text);
}

/** The same, for answers that may be something else, such as a proxy's page: undefined then. */
export function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * In one pass. Does not check whether the text is JSON.
 * @param text in UTF-8
 * @throws OddJson for more than 64 levels, or more values than allowed
 */
export function checkShape(text: Uint8Array, maxValues = MOST_VALUES): void {
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
    if (depth > DEEPEST || values > maxValues) {
      throw new OddJson(`it may be nested ${DEEPEST} levels deep and have ${maxValues} values at most`);
    }
  }
}

/** The position of the closing quote, or the text's end. Walks only strings with escapes. */
function endOfString(text: Uint8Array, start: number): number {
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
