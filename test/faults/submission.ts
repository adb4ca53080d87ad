/** What a scenario submits, and what is remembered of a job that was accepted. */
import { ada } from '../end-to-end/inbox.ts';
import { type SourceName, sourceSeconds } from './sources.ts';

/** What to submit; what is left out is the simplest there is. */
export interface Submission {
  /** One of the stand's videos, or any URL. Default talk.mp4. */
  readonly source?: SourceName | (string & {});
  readonly output?: object;
  readonly options?: object;
  /** Whether the job asks for a webhook to `hooks`. */
  readonly webhook?: boolean;
  /** Whether the job asks for a voice message to ada. */
  readonly voice?: boolean;
  readonly idempotencyKey?: string;
  /** Whose job it is; default the stand's own. */
  readonly key?: string;
}

export interface AcceptedJob {
  readonly jobId: string;
  readonly submission: Submission;
  /** When the 202 was there, ms since the epoch. */
  readonly acceptedAtMs: number;
  /** Seconds of sound that the source has; undefined when the stand does not know. */
  readonly seconds: number | undefined;
}

/** The request that stands for a submission. */
export function requestOf(
  { source = 'talk.mp4', output, options, webhook, voice }: Submission,
  urlOf: (video: string) => string,
  hookUrl: string,
): object {
  return {
    source: { type: 'url', url: source in sourceSeconds ? urlOf(source) : source },
    output: { format: 'mp3', ...output },
    options: {
      ...(webhook ? { webhook: hookUrl } : {}),
      ...(voice ? { voiceMessage: { instance: 'main', number: ada.number } } : {}),
      ...options,
    },
  };
}

export function acceptedJob(jobId: string, submission: Submission): AcceptedJob {
  const { source = 'talk.mp4' } = submission;
  const known = Object.entries(sourceSeconds).find(([name]) => name === source);
  return { jobId, submission, acceptedAtMs: Date.now(), seconds: known?.[1] };
}
