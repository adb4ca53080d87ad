/** The parts of an encode do not make one file; a single pass does. */
export class Unjoinable extends Error {
  override readonly name = 'Unjoinable';
}
