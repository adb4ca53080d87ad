/** Runs a job's steps in a folder of its own, each within its limit, and reports one progress. */

import { deadline, within } from 'soundpost-base/deadline';
import { ServiceError } from 'soundpost-contract/errors';
import { type InputFile, type ProcessingStep, stepsOf } from 'soundpost-contract/job';
import { isProbe, outputsOf } from 'soundpost-contract/output-request';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing } from 'soundpost-kit/observe/tracing/tracing';
import type { DiskClaim } from 'soundpost-kit/storage/disk-claim';
import { isDiskFull, outOfDiskSpace } from 'soundpost-kit/storage/disk-space';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { MediaFailure } from 'soundpost-media/failure';
import type { MediaTools } from 'soundpost-media/run';
import type { LocalSource } from 'soundpost-media/source-request';
import type { EarlyHearing } from '../followups/transcripts/early.ts';
import type { ExtractionJob } from '../jobs/extraction-consumer.ts';
import type { ExtractProgress, ExtractResult } from '../jobs/payloads.ts';
import type { Step, StepContext, WorkerServices } from './step.ts';
import { type AnalyzedVideo, analyze, inputFileOf } from './steps/analyze.ts';
import { answerProbe } from './steps/answer-probe.ts';
import { download } from './steps/download.ts';
import { extract, outputPath } from './steps/extract.ts';
import { finalize } from './steps/finalize.ts';

/**
 * @returns the job's result
 * @throws ServiceError for a final failure; the signal's reason; any other error is retried
 */
export async function runExtraction(
  job: ExtractionJob,
  services: WorkerServices,
  workspaces: Workspaces,
): Promise<ExtractResult> {
  const space = services.disk.open();
  try {
    return await workspaces.use(job.jobId, (workspace) => {
      space.countIn(workspace);
      return runSteps(job, services, workspace, space);
    });
  } catch (error) {
    throw isDiskFull(error) ? outOfDiskSpace(error) : error;
  } finally {
    // Released once the workspace is gone: other jobs count on the freed space.
    space.release();
  }
}

async function runSteps(
  job: ExtractionJob,
  services: WorkerServices,
  workspace: string,
  space: DiskClaim,
): Promise<ExtractResult> {
  const meter = new ProgressMeter(stepsOf(job.payload), Date.now(), job.report);
  const context: StepContext = {
    jobId: job.jobId,
    payload: job.payload,
    attemptToken: job.attemptToken,
    workspace,
    space,
    signal: job.signal,
    logger: services.logger.child({ jobId: job.jobId }),
    services: { ...services, tools: await chargedTo(job, services) },
    report: (step, fraction) => meter.advance(step, fraction, Date.now()),
  };
  const timed = timing(services);
  const limited = <Input, Output>(name: LimitedStep, step: Step<Input, Output>, input: Input) =>
    timed(name, () => withinLimit(name, job.signal, (signal) => step(input, { ...context, signal })));
  let leave: (() => void) | undefined;
  let encodedMs: number | undefined;
  const makeFiles = async (video: LocalSource): Promise<ExtractResult> => {
    const analyzed = await limited('analyze', analyze, video);
    meter.setInputFile(inputFileOf(analyzed, null));
    await using early = await hearEarly(analyzed, context);
    const extracted = await limited('extract', extract, analyzed);
    if (early === undefined) return limited('finalize', finalize, extracted);
    encodedMs = performance.now();
    // What is left needs the transcriber and the storage, no core.
    leave?.();
    return limited('finalize', finalize, { ...extracted, heard: await early.end() });
  };
  const startedMs = performance.now();
  try {
    const video = await limited('download', download, undefined);
    // Downloads wait for the link, the later steps for a core: a slow source keeps no core idle,
    // and an address that expires is fetched early (docs/decisions/0011-downloads-apart.md).
    const fetchedMs = performance.now();
    leave = await timed('await_encoder', () =>
      space.idle(job.signal, (signal) =>
        services.encoding.acquire({ order: job.order, key: job.payload.tenant, signal }),
      ),
    );
    const turnMs = performance.now();
    await job.takeTurn();
    const result = isProbe(job.payload)
      ? await limited('analyze', answerProbe, video)
      : await makeFiles(video);
    services.noteSeconds?.({
      fetching: (fetchedMs - startedMs) / 1000,
      encoding: ((encodedMs ?? performance.now()) - turnMs) / 1000,
    });
    return result;
  } catch (error) {
    if (error instanceof MediaFailure) {
      throw new ServiceError(error.code, error.message, { details: error.details, cause: error });
    }
    throw error;
  } finally {
    leave?.();
  }
}

/** For a caller that waits for the text alone (decisions F1): the job has no other output. */
async function hearEarly(
  { outputs: [{ plan }] }: AnalyzedVideo,
  { payload, services, jobId, workspace, space, signal }: StepContext,
): Promise<EarlyHearing | undefined> {
  const [output, ...others] = outputsOf(payload);
  if (output?.format !== 'transcript' || others.length > 0) return undefined;
  return services.hearEarly?.({
    ...{ jobId, tenant: payload.tenant, output, workspace, signal },
    path: outputPath(workspace, output.name),
    // A source that does not say may be longer than the limits.
    seconds: plan.expectedSeconds ?? 0,
    makeRoom: (bytes) => space.grow(bytes, signal),
  });
}

/** Tools of the key, charged to it while they run; of a key over its budget at nice 19. */
async function chargedTo(job: ExtractionJob, { tools, charge }: WorkerServices): Promise<MediaTools> {
  const { tenant } = job.payload;
  if (charge === undefined) return { ...tools, owner: tenant };
  let isOver = await charge(tenant, 0);
  return {
    ...tools,
    owner: tenant,
    meter(seconds) {
      if (seconds > 0) {
        job.spent?.(seconds);
        void charge(tenant, seconds).then((isNow) => {
          isOver = isNow;
        });
      }
      return isOver;
    },
  };
}

/** Reports how long each step takes, however it ends, and makes a span of it. */
function timing({ observer, tracing = noTracing }: WorkerServices) {
  return async <Output>(
    step: Parameters<Observer['stepEnded']>[0],
    run: () => Promise<Output>,
  ): Promise<Output> => {
    const startedAt = performance.now();
    try {
      return await tracing.span(step, {}, run);
    } finally {
      observer?.stepEnded(step, (performance.now() - startedAt) / 1000);
    }
  };
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * How a failure names the step, and its limit as the last resort: a download's minimum rate and
 * ffmpeg's progress check end sooner and identify the cause better.
 */
const limits = {
  download: { does: 'downloading', limitMs: 2 * HOUR + 10 * MINUTE },
  analyze: { does: 'analyzing', limitMs: 10 * MINUTE },
  extract: { does: 'extracting', limitMs: 8 * HOUR },
  finalize: { does: 'storing the result', limitMs: 30 * MINUTE },
} as const;

type LimitedStep = keyof typeof limits;

/** For an aborted step to end: ffmpeg is killed after 2 s, a hung system call is abandoned. */
const ABORT_GRACE_MS = 10_000;

/**
 * Runs a step within its limit.
 * @param signal the job's; the step's own also aborts at the limit
 * @throws ServiceError INTERNAL_ERROR, which is retried, when the step overruns its limit, even if
 *   it ignores its signal; otherwise what the step throws
 */
export async function withinLimit<Output>(
  step: LimitedStep,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<Output>,
  limitMs: number = limits[step].limitMs,
  graceMs: number = ABORT_GRACE_MS,
): Promise<Output> {
  const error = new ServiceError(
    'INTERNAL_ERROR',
    `the job failed because ${limits[step].does} took too long`,
  );
  const reason = () => error;
  using limit = deadline(limitMs, { signal, reason });
  return await within(limitMs + graceMs, () => run(limit.signal), { reason });
}

/** Each step's share of the job's time. Encoding takes most; a download depends on the link. */
const SHARES: readonly (readonly [ProcessingStep, number])[] = [
  ['downloading_video', 30],
  ['analyzing_video', 2],
  ['extracting_audio', 40],
  ['normalizing_audio', 22],
  ['finalizing', 5],
];
/** Only a completed job shows 100. */
const HIGHEST = 99;

class ProgressMeter {
  readonly #startedMs: number;
  readonly #shares: readonly (readonly [ProcessingStep, number])[];
  readonly #total: number;
  readonly #report: (state: ExtractProgress) => void;
  #inputFile: InputFile | null = null;
  #step: ProcessingStep = 'downloading_video';
  #done = 0;

  constructor(steps: readonly ProcessingStep[], nowMs: number, report: (state: ExtractProgress) => void) {
    this.#shares = SHARES.filter(([step]) => steps.includes(step));
    this.#total = this.#shares.reduce((sum, [, share]) => sum + share, 0);
    this.#startedMs = nowMs;
    this.#report = report;
  }

  /** The job shows it with the next report. */
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
