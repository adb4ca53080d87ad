/** A job from its first step to its last, in a folder of its own. */
import { ServiceError } from 'soundpost-contract/errors';
import { type NamedOutput, outputsOf } from 'soundpost-contract/output-request';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing } from 'soundpost-kit/observe/tracing/tracing';
import type { DiskClaim } from 'soundpost-kit/storage/disk-claim';
import { isDiskFull, outOfDiskSpace } from 'soundpost-kit/storage/disk-space';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { MediaFailure } from 'soundpost-media/failure';
import type { MediaTools } from 'soundpost-media/run';
import type { ExtractionJob } from '../jobs/extraction-consumer.ts';
import type { ExtractResult } from '../jobs/payloads.ts';
import { ProgressMeter } from './progress.ts';
import type { Step, StepContext, WorkerServices } from './step.ts';
import { type LimitedStep, withinLimit } from './step-limits.ts';
import { analyze, inputFileOf } from './steps/analyze.ts';
import { download } from './steps/download.ts';
import { extract } from './steps/extract.ts';
import { finalize } from './steps/finalize.ts';

/**
 * @returns what the job made
 * @throws ServiceError for an end that no further try would change; the signal's reason; anything else to be tried again
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
    // Not before the workspace has gone: others count on the space that is given back.
    space.release();
  }
}

async function runSteps(
  job: ExtractionJob,
  services: WorkerServices,
  workspace: string,
  space: DiskClaim,
): Promise<ExtractResult> {
  const meter = new ProgressMeter(outputsOf(job.payload).some(isLevelled), Date.now(), job.report);
  let processorSeconds = 0;
  const context: StepContext = {
    jobId: job.jobId,
    payload: job.payload,
    attemptToken: job.attemptToken,
    workspace,
    space,
    signal: job.signal,
    logger: services.logger.child({ jobId: job.jobId }),
    services: {
      ...services,
      tools: metered(services.tools, (seconds) => {
        processorSeconds += seconds;
      }),
    },
    report: (step, fraction) => meter.advance(step, fraction, Date.now()),
  };
  const timed = timing(services);
  const limited = <Input, Output>(name: LimitedStep, step: Step<Input, Output>, input: Input) =>
    timed(name, () => withinLimit(name, job.signal, (signal) => step(input, { ...context, signal })));
  const startedMs = performance.now();
  let leave: (() => void) | undefined;
  try {
    const video = await limited('download', download, undefined);
    // Downloads wait for the link, what follows for a core: a slow source keeps no core idle, and an address that expires is
    // fetched while others are encoded (docs/decisions/0011-downloads-apart.md).
    const fetchedMs = performance.now();
    leave = await timed('await_encoder', () =>
      space.idle(job.signal, (signal) =>
        services.encoding.acquire({ order: job.order, key: job.payload.tenant, signal }),
      ),
    );
    const turnMs = performance.now();
    await job.takeTurn();
    const analyzed = await limited('analyze', analyze, video);
    meter.setInputFile(inputFileOf(analyzed, null));
    const extracted = await limited('extract', extract, analyzed);
    const result = await limited('finalize', finalize, extracted);
    services.noteSeconds?.({
      fetching: (fetchedMs - startedMs) / 1000,
      encoding: (performance.now() - turnMs) / 1000,
    });
    return result;
  } catch (error) {
    if (error instanceof MediaFailure) {
      throw new ServiceError(error.code, error.message, { details: error.details, cause: error });
    }
    throw error;
  } finally {
    leave?.();
    if (processorSeconds > 0) services.charge?.(job.payload.tenant, processorSeconds);
  }
}

function isLevelled(output: NamedOutput): boolean {
  return 'normalize' in output && output.normalize;
}

/** The tools, with what each run used told besides. */
function metered(tools: MediaTools, onUsed: (processorSeconds: number) => void): MediaTools {
  return {
    ...tools,
    watch(tool) {
      const tell = tools.watch?.(tool);
      return (ending, processorSeconds) => {
        onUsed(processorSeconds);
        tell?.(ending, processorSeconds);
      };
    },
  };
}

/** Tells how long each step takes, however it ends, and makes a span of it. */
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
