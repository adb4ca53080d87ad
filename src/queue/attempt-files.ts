/** What the files of a job's attempts are called in the storage: also of attempts that left nothing but a name. */
import { type FormatName, formatOf } from '../contract/formats.ts';

export interface AttemptFiles {
  readonly output: string;
  /** The rendition for a voice message. */
  readonly voice: string;
}

/** @param attemptToken names the attempt; no other attempt at any job has the same */
export function attemptFiles(jobId: string, attemptToken: string, format: FormatName): AttemptFiles {
  const base = `files/${jobId}/${attemptToken}`;
  return { output: `${base}.${formatOf(format).extension}`, voice: `${base}.voice.ogg` };
}
