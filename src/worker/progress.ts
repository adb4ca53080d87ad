/** From how far a step is to the one number that callers see. */
import type { InputFile, ProcessingStep } from 'soundpost-contract/job';
import type { ExtractProgress } from '../jobs/payloads.ts';

/** The share of each step in a job's time: encoding takes most of it, a download what the link allows. */
const SHARES: readonly (readonly [ProcessingStep, number])[] = [
  ['downloading_video', 30],
  ['analyzing_video', 2],
  ['extracting_audio', 40],
  ['normalizing_audio', 22],
  ['finalizing', 5],
];
/** 100 is the completed job's alone. */
const HIGHEST = 99;

export class ProgressMeter {
  readonly #startedMs: number;
  readonly #shares: readonly (readonly [ProcessingStep, number])[];
  readonly #total: number;
  readonly #report: (state: ExtractProgress) => void;
  #inputFile: InputFile | null = null;
  #step: ProcessingStep = 'downloading_video';
  #done = 0;

  /** @param normalizes whether the job has the step normalizing_audio */
  constructor(normalizes: boolean, nowMs: number, report: (state: ExtractProgress) => void) {
    this.#shares = SHARES.filter(([step]) => normalizes || step !== 'normalizing_audio');
    this.#total = this.#shares.reduce((sum, [, share]) => sum + share, 0);
    this.#startedMs = nowMs;
    this.#report = report;
  }

  /** From then on the job shows what its input is. */
  setInputFile(inputFile: InputFile): void {
    this.#inputFile = inputFile;
  }

  advance(step: ProcessingStep, fraction: number, nowMs: number): void {
    const index = this.#shares.findIndex(([name]) => name === step);
    const before = this.#shares.slice(0, index).reduce((sum, [, share]) => sum + share, 0);
    const share = this.#shares[index]?.[1] ?? 0;
    const done = (before + share * Math.min(1, Math.max(0, fraction))) / this.#total;
    this.#step = step;
    this.#done = Math.max(this.#done, done);
    const elapsedSeconds = (nowMs - this.#startedMs) / 1000;
    const remaining = this.#done > 0 ? (elapsedSeconds * (1 - this.#done)) / this.#done : undefined;
    this.#report({
      progress: Math.min(HIGHEST, Math.floor(this.#done * 100)),
      currentStep: this.#step,
      ...(remaining === undefined ? {} : { estimatedTimeRemaining: Math.round(remaining * 10) / 10 }),
      inputFile: this.#inputFile,
    });
  }
}
