/** How much of a stranger's bytes is read in the process that also answers others. */

/** Shorter inputs are read in place: it takes about a millisecond. */
export const IN_PLACE_BYTES = 64 * 1024;

/** Thrown where more than that has to be read: it is begun again in the process for it. */
export class NotInPlace extends Error {
  override readonly name = 'NotInPlace';
}

/** Options for work in the reader process. */
export interface Reading {
  readonly signal: AbortSignal;
  /** Gets the processor time that the other process has used, seconds. */
  readonly charge?: ((processorSeconds: number) => void) | undefined;
  /** Whose it is: nobody's waits for another owner's. Default: one for all that say nothing. */
  readonly owner?: string | undefined;
}
