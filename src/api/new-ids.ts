/** Ids of new jobs and batches. */
import { createHash, randomUUID } from 'node:crypto';

/** The n-th id of a submission: from the seed of its idempotency key, or random. */
export function idFor(prefix: 'job' | 'batch', seed: string | undefined, index: number): string {
  const hex =
    seed === undefined
      ? randomHex()
      : createHash('sha256').update(`${seed}:${prefix}:${index}`).digest('hex').slice(0, 16);
  return `${prefix}_${hex}`;
}

/** 64 bits: all digits of a UUID that are random (RFC 9562, 5.4). It has a store of them, a tenth of the price of asking each time. */
function randomHex(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(-8);
}
