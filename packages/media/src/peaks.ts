/** A waveform as a file: JSON of audiowaveform, version 2 (github.com/bbc/audiowaveform, doc/DataFormat.md), mono and 8 bits. */
import { open } from 'node:fs/promises';
import { PcmSamples } from './pcm-samples.ts';

/** Pairs that there is room for at first: an hour at the default of 20 a second. */
const FIRST_PAIRS = 72_000;

/** Values in one write. */
const WRITTEN_AT_ONCE = 65_536;

/** audiowaveform divides samples of 16 bits by it, towards zero. */
const TO_8_BITS = 256;

/** Takes mono 16-bit PCM as it comes and keeps two bytes for each pixel: 6 h at 100 pixels a second are 4.3 MB. */
export class Peaks {
  readonly #samplesPerPixel: number;
  readonly #pcm = new PcmSamples((sample) => this.#add(sample));
  #pairs = new Int8Array(2 * FIRST_PAIRS);
  #length = 0;
  #count = 0;
  #lowest = 0;
  #highest = 0;

  constructor(samplesPerPixel: number) {
    this.#samplesPerPixel = samplesPerPixel;
  }

  push(pcm: Buffer): void {
    this.#pcm.push(pcm);
  }

  /**
   * Writes what was taken; the last pixel may stand for fewer samples than the others.
   * @returns how many bytes the file has
   */
  async write(path: string, sampleRate: number): Promise<number> {
    if (this.#count > 0) this.#end();
    await using file = await open(path, 'w', 0o600);
    const about = {
      version: 2,
      channels: 1,
      sample_rate: sampleRate,
      samples_per_pixel: this.#samplesPerPixel,
      bits: 8,
      length: this.#length,
    };
    await file.writeFile(`${JSON.stringify(about).slice(0, -1)},"data":[`);
    const values = this.#pairs.subarray(0, 2 * this.#length);
    for (let at = 0; at < values.length; at += WRITTEN_AT_ONCE) {
      const comma = at === 0 ? '' : ',';
      await file.writeFile(comma + values.subarray(at, at + WRITTEN_AT_ONCE).join(','));
    }
    await file.writeFile(']}\n');
    return (await file.stat()).size;
  }

  #add(sample: number): void {
    if (this.#count === 0) {
      this.#lowest = sample;
      this.#highest = sample;
    } else if (sample < this.#lowest) {
      this.#lowest = sample;
    } else if (sample > this.#highest) {
      this.#highest = sample;
    }
    this.#count += 1;
    if (this.#count === this.#samplesPerPixel) this.#end();
  }

  #end(): void {
    if (2 * this.#length === this.#pairs.length) {
      const larger = new Int8Array(2 * this.#pairs.length);
      larger.set(this.#pairs);
      this.#pairs = larger;
    }
    this.#pairs[2 * this.#length] = Math.trunc(this.#lowest / TO_8_BITS);
    this.#pairs[2 * this.#length + 1] = Math.trunc(this.#highest / TO_8_BITS);
    this.#length += 1;
    this.#count = 0;
  }
}
