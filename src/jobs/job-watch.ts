/** What an observer is told of extractions by the worker that runs them. */
import type { Job, Worker } from 'bullmq';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { readFailure } from './job-record.ts';

/** To be called when an attempt begins; only the first one of a job counts. */
export function observeStart(job: Job, observer: Observer | undefined): void {
  if (job.attemptsStarted === 1 && job.processedOn !== undefined) {
    observer?.jobTaken(Math.max(0, job.processedOn - job.timestamp) / 1000);
  }
}

/** Of attempts that another one follows nothing is told: BullMQ gives only the job's last one its time of end. */
export function observeEnds(worker: Worker, observer: Observer | undefined): void {
  worker.on('completed', (job) =>
    observer?.jobEnded({ state: 'completed' }, secondsOf(job), job.data.tenant),
  );
  worker.on('failed', (job, error) => {
    if (job?.finishedOn !== undefined) {
      const end = { state: 'failed', code: readFailure(error.message).code } as const;
      observer?.jobEnded(end, secondsOf(job), job.data.tenant);
    }
  });
}

function secondsOf({ processedOn, finishedOn }: Job): number | undefined {
  return processedOn === undefined || finishedOn === undefined
    ? undefined
    : (finishedOn - processedOn) / 1000;
}
