/** All planted faults: one for each promise, and the drawn mutants. */
import { apiFaults } from './api.ts';
import type { Fault } from './fault.ts';
import { queueFaults } from './queue.ts';
import { uploadFaults } from './uploads.ts';

export const faults: readonly Fault[] = [...apiFaults, ...uploadFaults, ...queueFaults];
