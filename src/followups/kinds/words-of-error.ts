/**
 * What a messaging server says of an error, whatever its shape: the public one answers lines, objects such as `{jid, exists: false, number}`, and
 * `[object Object]` where it lost what it wanted to say (pure).
 */

const MOST_WORDS = 500;
/** Objects inside of objects that are looked through for words. */
const MOST_DEPTH = 4;
/** What a program writes that took an object for a text. */
const LOST_OBJECT = /\[object \w+\]/g;

/** Lines are put together; empty where nothing was said. */
export function inWords(said: unknown, depth = MOST_DEPTH): string {
  const lines = [said].flat(3).map((line) => {
    if (typeof line === 'string') return withoutLost(line);
    if (typeof line !== 'object' || line === null || depth === 0) return '';
    const { exists, number, jid, message, error } = line as Readonly<Record<string, unknown>>;
    if (exists === false) return `${nameOf(number) ?? nameOf(jid) ?? 'the number'} is not on the network`;
    return inWords(message, depth - 1) || inWords(error, depth - 1) || withoutLost(jsonOf(line));
  });
  return lines
    .filter((line) => line !== '')
    .join('; ')
    .slice(0, MOST_WORDS);
}

/** Empty where nothing else was said. */
function withoutLost(text: string): string {
  const left = text.replace(LOST_OBJECT, '…').trim();
  return /^[…,;:\s]*$/.test(left) ? '' : left;
}

function nameOf(recipient: unknown): string | undefined {
  return typeof recipient === 'string' || typeof recipient === 'number' ? String(recipient) : undefined;
}

/** What is nested too deeply to be written is not worth it. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}
