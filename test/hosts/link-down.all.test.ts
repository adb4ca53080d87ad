import { runs } from '../faults/runs.ts';
import { linkIsCut } from './link-cut.ts';

linkIsCut('down', runs(10, 30));
