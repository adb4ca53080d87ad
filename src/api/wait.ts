/**
 * Submissions that wait for the end of their job: `Prefer: wait` (RFC 7240, 4.3; decisions A4,
 * "In one request"). The job is accepted as without it, and a caller that leaves changes nothing.
 */
import { deadline } from 'soundpost-base/deadline';
import { AcceptedJob } from 'soundpost-contract/answers';
import { Job } from 'soundpost-contract/job';
import { z } from 'zod';
import { glanceAtJob, type JobRecord } from '../jobs/job-record.ts';
import { type Answer, type AnswerTurn, answerOnce, sendData } from './answer.ts';
import { openStream } from './event-streams.ts';
import { findJob, jobAnswer } from './job-answer.ts';
import { jobStates } from './job-states.ts';
import { keyOf, type RouteContext } from './route.ts';
import { sendOnlyFile } from './routes/download.ts';

const LONGEST_SECONDS = 60;
const WAITING_PER_KEY = 50;
/** Before an entry of the key's waiting requests expires, see event-stream-hold.lua. */
const RENEW_MS = 15_000;

/** What OpenAPI says of the answer. */
export const endedAnswer = {
  description:
    'Only with `Prefer: wait`: the job has ended. Returns its file if `Accept` prefers that and the job has exactly one, else the job, also a failed one',
  data: Job,
  content: { 'audio/*': 'binary' },
  headers: {
    'Preference-Applied': '`wait`',
    'Soundpost-Job': 'With a file: the id of the job',
  },
} as const;

const Accepted = z.object({ data: AcceptedJob });

/**
 * Like {@link answerOnce}, for the submission of one job. With `Prefer: wait` it answers 200 with
 * the ended job or its only file, and 202 if the time is up first. Only the 202 is kept for an
 * Idempotency-Key, so a retry waits again.
 * @param onWait called before a wait, when the job is accepted
 * @throws LimitReached, with nothing submitted, when 50 requests of the key wait already
 */
export async function answerJob(
  context: RouteContext,
  fingerprint: string,
  work: (turn: AnswerTurn) => Promise<Answer>,
  onWait: () => Promise<void> = async () => {},
): Promise<void> {
  const { request, response } = context;
  const seconds = waitSeconds(request.get('prefer'));
  // A job is shown to a key that may read it: others get the 202, as preferences are not refused.
  if (seconds === undefined || !keyOf(context).scopes.includes('read')) {
    return answerOnce(context, fingerprint, work);
  }
  using place = await waitingPlace(context);
  await answerOnce(context, fingerprint, work, async ({ body }) => {
    response.setHeader('Preference-Applied', 'wait');
    const { jobId } = Accepted.parse(body).data;
    await onWait();
    const record = await endOf(context, jobId, seconds);
    // The answer may be a long file.
    place.dispose();
    return record !== undefined && (await sendEnded(context, record));
  });
}

/**
 * A place among the key's requests that wait, until disposed of.
 * @throws LimitReached when 50 wait already
 */
export async function waitingPlace(context: RouteContext): Promise<DisposableStack> {
  const { redis } = context.services;
  const stream = await openStream(redis, 'waiting_requests', keyOf(context).id, WAITING_PER_KEY);
  const renewing = setInterval(() => stream.renew(), RENEW_MS);
  const place = new DisposableStack();
  place.defer(() => {
    clearInterval(renewing);
    stream.close();
  });
  return place;
}

/** Undefined when the time is over, the service stops, the caller leaves or its key is revoked. */
async function endOf(context: RouteContext, jobId: string, seconds: number): Promise<JobRecord | undefined> {
  const { response, services } = context;
  const { changes } = services;
  const left = new AbortController();
  const leave = (): void => left.abort();
  response.once('close', leave);
  if (response.closed) leave();
  const unwatch = changes.watchRevocation(keyOf(context).id, leave);
  using limit = deadline(seconds * 1000, { signal: AbortSignal.any([changes.closing, left.signal]) });
  let state: JobRecord | 'unfinished' | undefined = 'unfinished';
  const look = async (): Promise<typeof state> => {
    try {
      const glance = await glanceAtJob(services.redis, jobId);
      const isEnded = glance?.status === 'completed' || glance?.status === 'failed';
      state = isEnded ? await findJob(services, jobId) : glance && 'unfinished';
    } catch (error) {
      // The job is accepted whatever fails now: 503 would say that it never runs.
      services.logger.warn({ jobId, err: error }, 'a job that is waited for could not be read');
    }
    return state;
  };
  try {
    for await (const seen of jobStates(changes, jobId, look, limit.signal)) {
      if (seen !== 'unfinished' && !left.signal.aborted) return seen;
    }
  } finally {
    unwatch();
    response.off('close', leave);
  }
  return undefined;
}

/** @returns false if nothing could be sent */
async function sendEnded(context: RouteContext, record: JobRecord): Promise<boolean> {
  const { response, services } = context;
  for (const send of [sendFile, sendJob]) {
    try {
      if (await send(context, record)) return true;
    } catch (error) {
      if (response.headersSent) throw error;
      const { jobId } = record;
      services.logger.warn({ jobId, err: error }, 'the end of a job could not be answered');
    }
  }
  return false;
}

/** What the caller likes best; a job that failed, or has no single file, is answered as JSON. */
async function sendFile(context: RouteContext, record: JobRecord): Promise<boolean> {
  const [best = ''] = context.request.accepts();
  const isWanted = best.startsWith('audio/') || best === 'application/octet-stream';
  return isWanted && keyOf(context).scopes.includes('download') && sendOnlyFile(context, record);
}

async function sendJob({ response, services }: RouteContext, record: JobRecord): Promise<boolean> {
  const job = await jobAnswer(record, services);
  response.setHeader('Cache-Control', 'no-store');
  sendData(response, 200, job);
  return true;
}

/**
 * @param field Prefer; the first of several preferences for `wait` counts (RFC 7240, 2)
 * @returns 1 to 60; undefined if there is none that can be read
 */
export function waitSeconds(field = ''): number | undefined {
  const preferences = field.match(/(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g) ?? [];
  const wait = preferences.find((one) => /^\s*wait\s*([=;]|$)/i.test(one)) ?? '';
  const [, digits] = /^\s*wait\s*=\s*"?0*([1-9]\d*)"?\s*(;|$)/i.exec(wait) ?? [];
  return digits === undefined ? undefined : Math.min(LONGEST_SECONDS, Number(digits));
}
