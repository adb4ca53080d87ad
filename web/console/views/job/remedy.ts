import type { Job } from 'soundpost-contract/job';
import { remedyOf } from 'soundpost-contract/remedies';
import { mayHelpToRetry } from '../../words.ts';

interface Remedy {
  readonly remedy: string;
  /** Whether the same job may succeed now. */
  readonly mayRetry: boolean;
}

/** @param job that has failed */
export function remedyFor(job: Job): Remedy {
  const { error } = job;
  const { remedy, lasts } = remedyOf(error?.code ?? '', error?.details ?? error?.message ?? '');
  return { remedy, mayRetry: !lasts && mayHelpToRetry(job) };
}
