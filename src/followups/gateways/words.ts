/** A messaging server's errors as text, whatever their form. */
import { z } from 'zod';

const MOST_WORDS = 500;
/** Depth to which nested objects are searched for text. */
const MOST_DEPTH = 4;
/** What a program writes for an object printed as text. */
const LOST_OBJECT = /\[object \w+\]/g;

const ErrorAnswer = z.object({
  exception: z.object({ message: z.unknown().optional() }).optional().catch(undefined),
  error: z.unknown().optional(),
  message: z.unknown().optional(),
  response: z.object({ message: z.unknown().optional() }).optional().catch(undefined),
});

/** Empty if the answer says nothing. */
export function wordsOf(json: unknown): string {
  const { exception, response, message, error } = ErrorAnswer.safeParse(json).data ?? {};
  const places = [exception?.message, response?.message, message, error];
  return places.map((one) => inWords(one)).find((words) => words !== '') ?? '';
}

/**
 * The public server sends lines, objects such as `{jid, exists: false, number}`, or a lost
 * `[object Object]`. Empty if it says nothing.
 */
function inWords(said: unknown, depth = MOST_DEPTH): string {
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

/** Empty if nothing else remains. */
function withoutLost(text: string): string {
  const left = text.replace(LOST_OBJECT, '…').trim();
  return /^[…,;:\s]*$/.test(left) ? '' : left;
}

function nameOf(recipient: unknown): string | undefined {
  return typeof recipient === 'string' || typeof recipient === 'number' ? String(recipient) : undefined;
}

/** An object nested too deeply to serialize is dropped. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}
