/** An answer that is not what its address should hold: cut off, empty, a page, something else. */
import { OutboundFailed } from 'soundpost-outbound/errors';
import { MediaFailure } from '../failure.ts';

/** Thrown while an answer is read, so that it is asked for again, at most three times in all. */
export class NotAsAsked extends OutboundFailed {
  /** What it means where no try brought anything better. */
  readonly failure: Error;

  /** @param options whether a retry cannot help; default: it may */
  constructor(failure: Error, { isFinal = false } = {}) {
    super('protocol', failure.message, !isFinal, { cause: failure });
    this.failure = failure;
  }
}

/** Runs a check of an answer, whose {@link MediaFailure} makes it be asked for again. */
export async function asAsked<T>(check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof MediaFailure ? new NotAsAsked(error) : error;
  }
}

/** What fetching it throws in the end. */
export async function orItsFailure<T>(fetched: Promise<T>): Promise<T> {
  try {
    return await fetched;
  } catch (error) {
    throw error instanceof NotAsAsked ? error.failure : error;
  }
}

/** Also of what a byte range should hold. */
export function isCutOff(error: unknown): error is OutboundFailed {
  return error instanceof OutboundFailed && error.kind === 'reset';
}
