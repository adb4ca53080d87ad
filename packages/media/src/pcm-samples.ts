/** Hands on the samples of 16-bit little-endian PCM that comes in pieces of any length, −1 … 1 being −32768 … 32767. */
export class PcmSamples {
  readonly #onSample: (sample: number) => void;
  #oddByte: number | undefined;

  constructor(onSample: (sample: number) => void) {
    this.#onSample = onSample;
  }

  push(pcm: Buffer): void {
    let at = 0;
    if (this.#oddByte !== undefined && pcm.length > 0) {
      this.#onSample((pcm.readInt8(0) << 8) | this.#oddByte);
      this.#oddByte = undefined;
      at = 1;
    }
    for (; at + 1 < pcm.length; at += 2) this.#onSample(pcm.readInt16LE(at));
    if (at < pcm.length) this.#oddByte = pcm[at];
  }
}
