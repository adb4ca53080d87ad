/** The first view with what another job came from and what was made of it, for who wants the like. */
import type { Job } from 'soundpost-contract/job';
import { goTo } from '../../route.ts';
import { chooseAsOf } from './choices.ts';
import { replaceBySourceOf } from './sources.ts';

export function startFrom(job: Job): void {
  replaceBySourceOf(job);
  chooseAsOf(job);
  goTo('#/');
}
