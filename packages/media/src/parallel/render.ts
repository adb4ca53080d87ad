/**
 * Several runs at once, on idle cores: one for each output, or for each part of a long one. Each
 * run decodes from the beginning, which is cheap, so that it encodes the samples that a single run
 * would. Parts join where encoders agree (docs/decisions/0012-parallel-encoding.md).
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EmptyOutputs, type Job, runOnInput } from '../input-run.ts';
import { type Heard, heardOf, UNHEARD } from '../mixing.ts';
import { isLight } from '../plan.ts';
import { clockOf, measureRendition, type RenderedFile, render } from '../render.ts';
import { isPiped, type Rendition, renditionCommand, soundOf } from '../rendition.ts';
import { outputStatistics } from '../tool-output.ts';
import type { EncodedPart } from './join.ts';
import { cut, mostParts, PART_LENGTHS, splicingOf, Unjoinable } from './parts.ts';

interface IdleCores {
  /** How many runs may run at once, the caller's own included; at least 1. */
  readonly count: number;
  readonly release: () => void;
}

export interface Parallelism {
  /** Takes idle cores at once. `most` includes the caller's own. */
  readonly takeIdle: (most: number) => IdleCores;
  /** Called when the parts could not be joined: the output is encoded again, in one. */
  readonly onUnjoined?: (reason: string) => void;
  /** Default: parts of at least 150 s that overlap by 30 s. */
  readonly lengths?: typeof PART_LENGTHS;
}

/** Renders over idle cores where possible, otherwise in one run. */
export async function renderWanted(
  job: Job,
  wanted: readonly Rendition[],
  parallel: Parallelism | undefined,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  const [first, ...beside] = wanted;
  if (parallel !== undefined && first !== undefined && beside.every(({ plan }) => isLight(plan))) {
    const files = await renderInParallel(job, first, beside, parallel, onSeconds);
    if (files !== null) return files;
  }
  return renderRuns(job, wanted, parallel, onSeconds);
}

/** Divides the outputs among as many runs as there are cores: on one core one decode serves all. */
async function renderRuns(
  job: Job,
  wanted: readonly Rendition[],
  parallel: Parallelism | undefined,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  const encoded = wanted.filter(({ mode }) => mode === 'encode').length;
  const idle = parallel !== undefined && encoded > 1 ? parallel.takeIdle(encoded) : undefined;
  try {
    const runs = dealOut(wanted, idle?.count ?? 1);
    const made = new Map<Rendition, RenderedFile>();
    for (const turn of runs) {
      const seconds = turn.map(() => 0);
      const files = await together(job, turn, (apart, renditions, index) =>
        render(apart, renditions, (reached) => {
          seconds[index] = reached;
          onSeconds(sum(seconds) / turn.length);
        }),
      );
      for (const [nth, rendition] of turn.flat().entries()) {
        const file = files.flat()[nth];
        if (file !== undefined) made.set(rendition, file);
      }
    }
    return wanted.flatMap((rendition) => made.get(rendition) ?? []);
  } finally {
    idle?.release();
  }
}

/**
 * Rounds of at most so many runs at a time. Outputs that begin one after the other share a run, so
 * that each decodes no further than its last one ends. A copy is quick and joins the first run. A
 * run has one pipe, so waveforms of different audio get a round of their own.
 */
export function dealOut(wanted: readonly Rendition[], cores: number): Rendition[][][] {
  const [sound] = wanted.filter(isPiped).map(soundOf);
  const isFirstTurn = (rendition: Rendition): boolean => !isPiped(rendition) || soundOf(rendition) === sound;
  const inTurn = wanted.filter(isFirstTurn).toSorted((one, other) => beginOf(one) - beginOf(other));
  const whole = sum(inTurn.map(workOf));
  const turn: Rendition[][] = Array.from({ length: cores }, () => []);
  let piped: Rendition[] | undefined;
  let dealt = 0;
  for (const rendition of inTurn) {
    const work = workOf(rendition);
    const next = turn[work === 0 ? 0 : Math.floor(((dealt + work / 2) / whole) * cores)];
    const run = isPiped(rendition) ? (piped ?? next) : next;
    if (isPiped(rendition)) piped = run;
    dealt += work;
    run?.push(rendition);
  }
  const others = wanted.filter((rendition) => !isFirstTurn(rendition));
  return [turn.filter((run) => run.length > 0), ...(others.length === 0 ? [] : dealOut(others, cores))];
}

function beginOf({ plan: { trim } }: Rendition): number {
  return trim?.startSeconds ?? 0;
}

/** Seconds to encode; of a source that does not say how long it is, 1 an output. */
function workOf({ mode, plan: { expectedSeconds } }: Rendition): number {
  return mode === 'copy' ? 0 : expectedSeconds || 1;
}

/**
 * @param onSeconds how far the output has come.
 * @returns null: encode it in one (too short, unspliceable, no idle cores, or parts do not fit)
 */
async function renderInParallel(
  job: Job,
  rendition: Rendition,
  beside: readonly Rendition[],
  { takeIdle, onUnjoined, lengths = PART_LENGTHS }: Parallelism,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[] | null> {
  const most = mostParts(rendition.plan, lengths);
  if (most < 2 || rendition.mode !== 'encode') return null;
  const idle = takeIdle(most);
  try {
    return idle.count < 2 ? null : await renderParts(job, rendition, beside, idle.count, lengths, onSeconds);
  } catch (error) {
    if (!(error instanceof Unjoinable)) throw error;
    onUnjoined?.(error.message);
    return null;
  } finally {
    idle.release();
  }
}

async function renderParts(
  job: Job,
  rendition: Rendition,
  beside: readonly Rendition[],
  count: number,
  lengths: typeof PART_LENGTHS,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  const { plan } = rendition;
  const splicing = splicingOf(plan);
  if (splicing === null) throw new Unjoinable(`${plan.formatName} is not spliced`);
  const parts = cut(plan, splicing, count, lengths, beside.length).map(
    (part, index): EncodedPart => ({ ...part, path: join(job.scratch, `part-${index}`) }),
  );
  try {
    const ends = await encodeAll(job, rendition, beside, parts, onSeconds);
    const last = ends.at(-1);
    const samples = (parts.at(-1)?.startSample ?? 0) + (last?.samples ?? 0);
    const { joinMp3, joinOpus } = await import('./join.ts');
    const joinParts = plan.format.codec === 'mp3' ? joinMp3 : joinOpus;
    const { signal } = job;
    const joined = await joinParts({ parts, outputPath: rendition.path, splicing, samples, signal });
    const file = await measureRendition(job, rendition, { ...joined, samples });
    // The last part's run reached the end.
    const clock = last?.clock ?? {
      ...{ sourceSeconds: file.durationSeconds, filledSeconds: 0, gapSeconds: 0 },
      ...UNHEARD,
    };
    return [{ ...file, ...clock, isInForm: true }, ...(last?.beside ?? [])];
  } finally {
    await Promise.all(parts.map(({ path }) => rm(path, { force: true })));
  }
}

/** What a part encoded, and how much of the track was read for it. */
interface PartEnd {
  readonly samples: number;
  readonly clock: Pick<RenderedFile, keyof ReturnType<typeof clockOf> | keyof Heard>;
  /** What the same run made besides. */
  readonly beside: readonly RenderedFile[];
}

/** Runs all parts. The last run decodes the whole track, so it also makes the light outputs. */
function encodeAll(
  job: Job,
  rendition: Rendition,
  beside: readonly Rendition[],
  parts: readonly EncodedPart[],
  onSeconds: (seconds: number) => void,
): Promise<PartEnd[]> {
  const seconds = parts.map(() => 0);
  return together(job, parts, (apart, part, index) =>
    encodePart(apart, rendition, index === parts.length - 1 ? beside : [], part, (reached) => {
      seconds[index] = reached;
      onSeconds(withoutOverlaps(rendition, parts, seconds));
    }),
  );
}

/** Runs them at the same time; the first failure ends the others and is thrown after they end. */
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

/** Audio that is encoded twice counts half, so the sum is the length of the output. */
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
  beside: readonly Rendition[],
  { path, ...stretch }: EncodedPart,
  onSeconds: (seconds: number) => void,
): Promise<PartEnd> {
  const { places, ...command } = await renditionCommand(job, [{ ...rendition, path, stretch }, ...beside]);
  // ffmpeg reports a run's longest file. Others begin at second 0 and may end before the part.
  const begin = stretch.startSample / rendition.plan.encode.sampleRate;
  const ahead = beside.some(({ plan }) => (plan.expectedSeconds ?? 0) > begin) ? begin : 0;
  const { stderr } = await runOnInput(job, command, (reached) =>
    onSeconds(Math.max(0, reached - ahead)),
  ).catch((error: unknown) => {
    throw error instanceof EmptyOutputs ? new Unjoinable('a part holds no audio') : error;
  });
  const { samples = 0 } = outputStatistics(stderr, 0) ?? {};
  // The container promised more than there is; the single pass reports that.
  if (samples === 0) throw new Unjoinable('a part holds no audio');
  const files: RenderedFile[] = [];
  for (const [nth, other] of beside.entries()) {
    const { output, clock } = places[nth + 1] ?? { output: nth + 1, clock: 0 };
    const file = await measureRendition(job, other, outputStatistics(stderr, output));
    const onClock = clockOf(job, other, stderr, file.durationSeconds, clock);
    files.push({ ...file, ...onClock, ...heardOf(other.plan, stderr, clock), isInForm: true });
  }
  const heard = rendition.pcm === null ? heardOf(rendition.plan, stderr, 0) : UNHEARD;
  return { samples, clock: { ...clockOf(job, rendition, stderr, 0), ...heard }, beside: files };
}
