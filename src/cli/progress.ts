/** Progress on standard error: a bar on a terminal, otherwise a line for each step. */
import { styleText } from 'node:util';
import type { Job, ProcessingStep } from 'soundpost-contract/job';
import type { Streams } from './streams.ts';

interface Report {
  /** For example `downloading`. */
  readonly step: string;
  /** 0 … 1 of all the work; undefined if unknown. */
  readonly fraction?: number | undefined;
  readonly secondsLeft?: number | undefined;
}

export interface Progress {
  show(report: Report): void;
  /** A line that stays. */
  note(line: string): void;
  /** Removes the bar. */
  end(): void;
}

/** The parts of a stream in use; `columns` is undefined for a terminal of unknown width. */
type ProgressStream = Streams['stderr'];

const DEFAULT_COLUMNS = 80;
const LONGEST_BAR = 40;
const SHORTEST_BAR = 5;
const STEP_COLUMNS = 12;

/** @param terminalKind TERM: a dumb terminal gets lines */
export function progressOn(
  stream: ProgressStream,
  { quiet, terminalKind }: { readonly quiet: boolean; readonly terminalKind: string },
): Progress {
  if (quiet) return { show: () => undefined, note: () => undefined, end: () => undefined };
  return stream.isTTY && terminalKind !== 'dumb' ? bar(stream) : lines(stream);
}

function lines(stream: ProgressStream): Progress {
  let step = '';
  return {
    show(report) {
      if (report.step !== step) {
        step = report.step;
        stream.write(`${step}\n`);
      }
    },
    note: (line) => stream.write(`${line}\n`),
    end: () => undefined,
  };
}

/** Overwrites a single line, only if it has changed, so frequent reports cost nothing. */
function bar(stream: ProgressStream): Progress {
  let shown = '';
  const erase = (): void => {
    if (shown !== '') stream.write('\r\u001b[K');
    shown = '';
  };
  return {
    show(report) {
      const line = barLine(report, stream.columns || DEFAULT_COLUMNS);
      if (line !== shown) {
        stream.write(`\r${coloured(line, stream)}\u001b[K`);
        shown = line;
      }
    },
    note(line) {
      erase();
      stream.write(`${line}\n`);
    },
    end: erase,
  };
}

/** Never wider than the terminal: a wrapped line cannot be overwritten. */
function barLine({ step, fraction, secondsLeft }: Report, columns: number): string {
  const room = columns - 1;
  const name = step.padEnd(STEP_COLUMNS);
  if (fraction === undefined) return name.trimEnd().slice(0, room);
  const percent = `${Math.floor(fraction * 100)} %`.padStart(5);
  const left = secondsLeft === undefined ? '' : `  ${clock(secondsLeft)} left`;
  const width = Math.min(LONGEST_BAR, room - name.length - percent.length - left.length - 3);
  if (width < SHORTEST_BAR) return `${name.trimEnd()} ${percent.trim()}`.slice(0, room);
  const filled = Math.round(width * fraction);
  return `${name} ${'█'.repeat(filled)}${'░'.repeat(width - filled)}  ${percent}${left}`.slice(0, room);
}

/** styleText honours NO_COLOR and terminals without colours. */
function coloured(line: string, stream: ProgressStream): string {
  return line.replace(/█+/, (filled) => styleText('green', filled, { stream }));
}

/** `0:07`, `1:02:03` */
function clock(seconds: number): string {
  const whole = Math.ceil(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [first = 0, ...rest] = parts[0] === 0 ? parts.slice(1) : parts;
  return [String(first), ...rest.map((part) => String(part).padStart(2, '0'))].join(':');
}

/** The job's steps in words. */
const stepWords: Readonly<Record<ProcessingStep, string>> = {
  downloading_video: 'downloading',
  analyzing_video: 'analyzing',
  extracting_audio: 'extracting',
  normalizing_audio: 'normalizing',
  finalizing: 'finalizing',
};

type JobProgress = Pick<Job, 'progress' | 'currentStep' | 'estimatedTimeRemaining'>;

export function reportOf({ progress, currentStep, estimatedTimeRemaining }: JobProgress): Report {
  return currentStep === null
    ? { step: 'waiting' }
    : { step: stepWords[currentStep], fraction: progress / 100, secondsLeft: estimatedTimeRemaining };
}
