// What can be done with a job from wherever it is shown.
import { once, request } from './connection.js';
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
