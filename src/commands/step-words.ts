/** The steps of a job in a person's words. */
import type { Job, ProcessingStep } from '../contract/job.ts';
import type { Report } from './progress.ts';

const words: Readonly<Record<ProcessingStep, string>> = {
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
    : { step: words[currentStep], fraction: progress / 100, secondsLeft: estimatedTimeRemaining };
}
