/** Two secrets compared. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** Takes a time that depends on neither the content nor the length of what was given. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
