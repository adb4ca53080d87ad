/**
 * Several runs at the same time, over cores that would be idle: one for each output, or one for each part of a long one. Each run decodes from the
 * beginning, which costs little, so that it encodes the very samples that a single run would; parts are joined where two encoders make the same
 * packets. docs/decisions/0012-parallel-encoding.md
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Job, runOnInput } from '../input-run.ts';
import { BrokenOgg } from '../ogg/pages.ts';
import { clockOf, measureRendition, type RenderedFile, render } from '../render.ts';
import { type Rendition, renditionCommand } from '../rendition.ts';
import { outputStatistics } from '../statistics.ts';
import type { EncodedPart } from './join.ts';
import { cut, mostParts, PART_LENGTHS, type PartLengths, splicingOf } from './parts.ts';
import { Unjoinable } from './unjoinable.ts';

interface IdleCores {
  /** How many runs may go on at the same time, the caller's own counted; at least 1. */
  readonly count: number;
  readonly release: () => void;
}

export interface Parallelism {
  /** Takes cores that nobody waits for, at once. `most` counts the one that the caller has already. */
  readonly takeIdle: (most: number) => IdleCores;
  /** Told when the parts could not be joined: the output is encoded again, in one. */
  readonly onUnjoined?: (reason: string) => void;
  /** Default: parts of 150 s at the least that overlap by 30 s. */
  readonly lengths?: PartLengths;
}

/** What is wanted over idle cores where that can be, and otherwise in one run. */
export async function renderWanted(
  job: Job,
  wanted: readonly Rendition[],
  parallel: Parallelism | undefined,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  if (parallel === undefined) return render(job, wanted, onSeconds);
  const [only, ...others] = wanted;
  if (only !== undefined && others.length === 0) {
    const file = await renderInParallel(job, only, parallel, onSeconds);
    return file === null ? render(job, wanted, onSeconds) : [file];
  }
  return renderSideBySide(job, wanted, parallel, onSeconds);
}

/** Each output in a run of its own where there is a core for each; otherwise one decode serves them all, as it does beside a copy, which takes no time. */
async function renderSideBySide(
  job: Job,
  wanted: readonly Rendition[],
  { takeIdle }: Parallelism,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  if (wanted.some(({ mode }) => mode === 'copy')) return render(job, wanted, onSeconds);
  const idle = takeIdle(wanted.length);
  try {
    if (idle.count < wanted.length) return await render(job, wanted, onSeconds);
    const seconds = wanted.map(() => 0);
    const files = await together(job, wanted, (apart, rendition, index) =>
      render(apart, [rendition], (reached) => {
        seconds[index] = reached;
        onSeconds(sum(seconds) / wanted.length);
      }),
    );
    return files.flat();
  } finally {
    idle.release();
  }
}

/**
 * @param onSeconds how far the output has come.
 * @returns null when it is to be encoded in one: too short, not of a codec that can be spliced, no idle cores, or parts that do not fit
 */
async function renderInParallel(
  job: Job,
  rendition: Rendition,
  { takeIdle, onUnjoined, lengths = PART_LENGTHS }: Parallelism,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile | null> {
  const most = mostParts(rendition.plan, lengths);
  if (most < 2 || rendition.mode !== 'encode') return null;
  const idle = takeIdle(most);
  try {
    return idle.count < 2 ? null : await renderParts(job, rendition, idle.count, lengths, onSeconds);
  } catch (error) {
    if (!(error instanceof Unjoinable || error instanceof BrokenOgg)) throw error;
    onUnjoined?.(error.message);
    return null;
  } finally {
    idle.release();
  }
}

async function renderParts(
  job: Job,
  rendition: Rendition,
  count: number,
  lengths: PartLengths,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile> {
  const { plan } = rendition;
  const splicing = splicingOf(plan);
  if (splicing === null) throw new Unjoinable(`${plan.formatName} is not spliced`);
  const parts = cut(plan, splicing, count, lengths).map(
    (part, index): EncodedPart => ({ ...part, path: join(job.scratch, `part-${index}`) }),
  );
  try {
    const ends = await encodeAll(job, rendition, parts, onSeconds);
    const last = ends.at(-1);
    const samples = (parts.at(-1)?.startSample ?? 0) + (last?.samples ?? 0);
    const { joinMp3, joinOpus } = await import('./join.ts');
    const joinParts = plan.format.codec === 'mp3' ? joinMp3 : joinOpus;
    const { signal } = job;
    const joined = await joinParts({ parts, outputPath: rendition.path, splicing, samples, signal });
    const file = await measureRendition(job, rendition, { ...joined, samples });
    // The last part's run is the one that came to the end.
    const clock = last?.clock ?? { sourceSeconds: file.durationSeconds, filledSeconds: 0 };
    return { ...file, ...clock, isInForm: true };
  } finally {
    await Promise.all(parts.map(({ path }) => rm(path, { force: true })));
  }
}

/** What was encoded in a part, and how much of the track was read for it. */
interface PartEnd {
  readonly samples: number;
  readonly clock: Pick<RenderedFile, 'sourceSeconds' | 'filledSeconds'>;
}

/** Runs all parts. */
function encodeAll(
  job: Job,
  rendition: Rendition,
  parts: readonly EncodedPart[],
  onSeconds: (seconds: number) => void,
): Promise<PartEnd[]> {
  const seconds = parts.map(() => 0);
  return together(job, parts, (apart, part, index) =>
    encodePart(apart, rendition, part, (reached) => {
      seconds[index] = reached;
      onSeconds(withoutOverlaps(rendition, parts, seconds));
    }),
  );
}

/** Runs them at the same time; the first failure ends the others, and is thrown once they have ended. */
async function together<T, R>(
  job: Job,
  items: readonly T[],
  run: (job: Job, item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const failed = new AbortController();
  const signal = AbortSignal.any([job.signal, failed.signal]);
  const ends = await Promise.allSettled(
    items.map(async (item, index) => {
      try {
        return await run({ ...job, signal }, item, index);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    }),
  );
  signal.throwIfAborted();
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** What is encoded twice counts as half of it, so that all together come to the length of the whole. */
function withoutOverlaps(
  { plan: { encode, expectedSeconds } }: Rendition,
  parts: readonly EncodedPart[],
  seconds: readonly number[],
): number {
  const whole = expectedSeconds ?? 0;
  const lengths = parts.map(
    ({ startSample, endSample }) => (endSample ?? whole * encode.sampleRate) - startSample,
  );
  return (sum(seconds) * whole * encode.sampleRate) / sum(lengths);
}

async function encodePart(
  job: Job,
  rendition: Rendition,
  { path, ...stretch }: EncodedPart,
  onSeconds: (seconds: number) => void,
): Promise<PartEnd> {
  const command = await renditionCommand(job, [{ ...rendition, path, stretch }]);
  const { stderr } = await runOnInput(job, command, onSeconds);
  const { samples = 0 } = outputStatistics(stderr, 0) ?? {};
  // The container promised more than there is; the single pass says what that means.
  if (samples === 0) throw new Unjoinable('a part holds no audio');
  return { samples, clock: clockOf(rendition, stderr, 0) };
}
