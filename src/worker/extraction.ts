/** A job from its first step to its last, in a folder of its own. */
import { ServiceError } from '../contract/errors.ts';
import { MediaFailure } from '../media/failure.ts';
import type { ExtractionJob } from '../queue/extraction-consumer.ts';
import type { ExtractResult } from '../queue/payloads.ts';
import type { Workspaces } from '../storage/workspaces.ts';
import { ProgressMeter } from './progress.ts';
import type { StepContext, WorkerServices } from './step.ts';
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
  const meter = new ProgressMeter(job.payload.output.normalize, Date.now(), job.report);
  return workspaces.use(job.jobId, async (workspace) => {
    const context: StepContext = {
      jobId: job.jobId,
      payload: job.payload,
      attemptToken: job.attemptToken,
      workspace,
      signal: job.signal,
      logger: services.logger,
      services,
      report: (step, fraction) => meter.advance(step, fraction, Date.now()),
    };
    try {
      const video = await download(undefined, context);
      const analyzed = await analyze(video, context);
      meter.setInputFile(inputFileOf(analyzed, null));
      const extracted = await extract(analyzed, context);
      return await finalize(extracted, context);
    } catch (error) {
      if (error instanceof MediaFailure) {
        throw new ServiceError(error.code, error.message, { details: error.details, cause: error });
      }
      throw error;
    }
  });
}
