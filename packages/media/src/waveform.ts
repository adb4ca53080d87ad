/** The little picture of a voice message: how loud it is along its way. */
import { PcmSamples } from './pcm-samples.ts';

/** Bars of a waveform, as phones draw it. */
const BARS = 64;
const FULL_HEIGHT = 100;

/** What is quieter than −60 dB counts as silence: a codec's rounding is no picture of anything. */
const SILENCE = 0.001;

/** Samples that are summed up at once: 20 ms at {@link WAVEFORM_RATE}. */
const WINDOW_SAMPLES = 160;

/** Sample rate, Hz, of the mono signed 16-bit PCM that a {@link WaveformMeter} takes. */
export const WAVEFORM_RATE = 8000;

/** Takes PCM as it comes and keeps one number for each 20 ms, so that an hour is 1.4 MB. */
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

  /** 64 values, 0 … 100: the root mean square of each part, the loudest being 100; all 0 for silence. */
  bars(): Uint8Array {
    const windows = this.#count > 0 ? [...this.#windows, this.#mean()] : this.#windows;
    const levels = Array.from({ length: BARS }, (_, bar) => {
      const from = Math.floor((bar * windows.length) / BARS);
      const to = Math.max(from + 1, Math.floor(((bar + 1) * windows.length) / BARS));
      const part = windows.slice(from, to);
      return Math.sqrt(part.reduce((sum, power) => sum + power, 0) / Math.max(1, part.length));
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
    if (this.#count === WINDOW_SAMPLES) {
      this.#windows.push(this.#mean());
      this.#sumOfSquares = 0;
      this.#count = 0;
    }
  }

  #mean(): number {
    return this.#sumOfSquares / this.#count;
  }
}
