/** All planted faults: one for each promise, and the drawn mutants. */
import type { Fault } from './fault.ts';
import { apiFaults } from './api.ts';

export const faults: readonly Fault[] = [...apiFaults];
