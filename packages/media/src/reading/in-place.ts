/** How much of a stranger's bytes is read in the process that also answers others. */

/** Shorter inputs are read in place: it takes about a millisecond. */
export const IN_PLACE_BYTES = 64 * 1024;

/** Thrown where more than that has to be read: it is begun again in the process for it. */
export class NotInPlace extends Error {
  override readonly name = 'NotInPlace';
}
