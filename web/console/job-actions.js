// What can be done with a job from wherever it is shown.
import { once, request } from './connection.js';
import { errors } from './contract.js';
import { announce } from './page.js';

/** @returns the job as it is now */
export async function cancel(jobId) {
  // What has ended meanwhile would not be cancelled but erased.
  const now = await request(`v1/jobs/${jobId}`);
  if (now.status === 'completed' || now.status === 'failed') {
    return now;
  }
  const job = await request(`v1/jobs/${jobId}`, { method: 'DELETE' });
  announce('Cancelled');
  return job;
}

/** Makes a new job of a failed one, and goes there. */
export async function retry(jobId) {
  const accepted = await once(`v1/jobs/${jobId}/retry`);
  location.hash = `#/jobs/${accepted.jobId}`;
}

/** Whether the same job may succeed now: what lies in an upload, or in what was chosen, fails again. At an address there may be another file by now. */
export const mayHelpToRetry = ({ error, source }) =>
  error?.code === 'JOB_CANCELLED' ||
  (error?.code === 'INVALID_VIDEO' && source.type === 'url') ||
  errors[error?.code]?.retryable !== false;
