/** What can be done with a job from wherever it is shown. */
import { announce } from './announcements.ts';
import { tellJob } from './live.ts';
import { api } from './session.ts';

/** Ends a job that has not ended. */
export async function cancel(jobId: string): Promise<void> {
  // What has ended meanwhile would not be cancelled but erased.
  const now = await api().job(jobId);
  const isOver = now.status === 'completed' || now.status === 'failed';
  tellJob(isOver ? now : await api().cancel(jobId));
  if (!isOver) announce('Cancelled');
}

/** Removes the files of a finished job. */
export async function erase(jobId: string): Promise<void> {
  tellJob(await api().cancel(jobId));
}

/** Makes a new job of a failed one. @returns its id */
export async function retry(jobId: string): Promise<string> {
  return (await api().retry(jobId)).jobId;
}
