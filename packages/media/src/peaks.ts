/**
 * Waveforms of mono 16-bit PCM: as a file, which is JSON of audiowaveform, version 2, with 8 bits
 * (github.com/bbc/audiowaveform, doc/DataFormat.md), and as the bars of a voice message.
 */
import { open } from 'node:fs/promises';

/** Initial room for pairs: an hour at the default of 20 a second. */
const FIRST_PAIRS = 72_000;

const WRITTEN_AT_ONCE = 65_536;

/** audiowaveform divides samples of 16 bits by it, towards zero. */
const TO_8_BITS = 256;

/** Takes mono 16-bit PCM and keeps two bytes for each pixel: 6 h at 100 a second are 4.3 MB. */
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
   * Writes the pixels; the last one may stand for fewer samples than the others.
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

// The waveform of a voice message: its loudness over time.

/** Bars of a waveform, as phones draw it. */
const BARS = 64;
const FULL_HEIGHT = 100;

/** Below −60 dB is silence: a codec's rounding should not be drawn. */
const SILENCE = 0.001;

/** Samples that are summed up at once: 20 ms at {@link WAVEFORM_RATE}. */
const WINDOW_SAMPLES = 160;

/** Sample rate, Hz, of the mono signed 16-bit PCM that a {@link WaveformMeter} takes. */
export const WAVEFORM_RATE = 8000;

/** Takes PCM and keeps one number for each 20 ms, so that an hour is 1.4 MB. */
export class WaveformMeter {
  readonly #windows: number[] = [];
  readonly #pcm = new PcmSamples((sample) => this.#add(sample / 32768));
  #sumOfSquares = 0;
  #count = 0;
  #samples = 0;

  /** Samples taken so far. */
  get samples(): number {
    return this.#samples;
  }

  push(pcm: Buffer): void {
    this.#pcm.push(pcm);
  }

  /** 64 values, 0 … 100: root mean square of each part, the loudest 100; all 0 for silence. */
  bars(): Uint8Array {
    const windows = this.#windows;
    if (this.#count > 0) this.#endWindow();
    // Not by copies of each part: of six hours these took 0.2 s.
    const levels = Array.from({ length: BARS }, (_, bar) => {
      const from = Math.floor((bar * windows.length) / BARS);
      const to = Math.max(from + 1, Math.floor(((bar + 1) * windows.length) / BARS));
      let sum = 0;
      for (let at = from; at < to; at += 1) sum += windows[at] ?? 0;
      return Math.sqrt(sum / (to - from));
    });
    const loudest = Math.max(...levels);
    return Uint8Array.from(levels, (level) =>
      loudest > SILENCE ? Math.round((level / loudest) * FULL_HEIGHT) : 0,
    );
  }

  #add(sample: number): void {
    this.#samples += 1;
    this.#count += 1;
    this.#sumOfSquares += sample * sample;
    if (this.#count === WINDOW_SAMPLES) this.#endWindow();
  }

  #endWindow(): void {
    this.#windows.push(this.#sumOfSquares / this.#count);
    this.#sumOfSquares = 0;
    this.#count = 0;
  }
}

/** Hands on samples of 16-bit little-endian PCM in chunks of any length: −32768 … 32767. */
class PcmSamples {
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
