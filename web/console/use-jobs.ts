/** A page of a list of jobs that keeps itself up to date. */
import { useEffect, useState } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { listen, withMoves } from './live.ts';
import { api, isAborted, sentence } from './session.ts';
import { nameOf } from './words.ts';

/** After a list that did not come. */
const AGAIN_MS = 3000;
/** The most that the service gives at a time. */
const MOST_AT_A_TIME = 100;

export interface JobQuery {
  readonly q: string;
  readonly status: '' | Job['status'];
  /** First and last moment of submission, ISO 8601; empty for no bound. */
  readonly from: string;
  readonly to: string;
}

interface Page {
  readonly jobs: readonly Job[];
  /** Where the next page begins; null for the last. */
  readonly cursor: string | null;
  /** How many match in all; a search does not know. */
  readonly total?: number | undefined;
}

/**
 * @param pageSize 1 … 100
 * @param after the cursor of the page before; empty for the newest jobs
 */
export function useJobs(query: JobQuery, pageSize: number, after: string) {
  const [page, setPage] = useState<Page>();
  const [fault, setFault] = useState('');
  const [freshness, refresh] = useState(0);
  const { q, status, from, to } = query;
  const asked = [q, status, from, to, after];
  // What matched before is not shown under another filter.
  useEffect(() => setPage(undefined), asked);
  useEffect(() => {
    const aborting = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    withMoves(() => loadPage(query, pageSize, after, aborting.signal)).then(
      ({ answer, moved }) => {
        setPage([...moved.values()].reduce((shown, job) => placed(shown, job, query, after), answer));
        setFault('');
      },
      (error: unknown) => {
        if (isAborted(error)) return;
        setFault(sentence(error));
        again = setTimeout(() => refresh((times) => times + 1), AGAIN_MS);
      },
    );
    return () => {
      aborting.abort();
      clearTimeout(again);
    };
  }, [...asked, freshness]);
  useEffect(
    () =>
      listen({
        // What was missed is not told: the list is asked for again.
        onFresh: () => refresh((times) => times + 1),
        onJob: (job) => setPage((shown) => shown && placed(shown, job, query, after)),
      }),
    asked,
  );
  return { page, fault };
}

/** Every job that matches, page by page. @param onCount told how many were found so far */
export async function allJobs(
  query: JobQuery,
  onCount: (count: number) => void,
  signal: AbortSignal,
): Promise<readonly Job[]> {
  const jobs: Job[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: Page = await loadPage(query, MOST_AT_A_TIME, cursor, signal);
    jobs.push(...page.jobs);
    onCount(jobs.length);
    cursor = page.cursor;
  }
  return jobs;
}

/** A page may hold fewer than were asked for, even none, although more follow. */
async function loadPage(query: JobQuery, limit: number, after: string, signal: AbortSignal): Promise<Page> {
  const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));
  const jobs: Job[] = [];
  let cursor: string | null = after;
  let total: number | undefined;
  do {
    const page = await api().jobs({ limit, signal, ...given, ...(cursor === '' ? {} : { cursor }) });
    jobs.push(...page.jobs);
    total = page.total;
    cursor = page.nextCursor;
  } while (jobs.length === 0 && cursor !== null);
  return { jobs, cursor, total };
}

/** The page with a job that has come or moved: a known one in its place, a new one on top of the first page where it matches. */
function placed(page: Page, job: Job, { q, status, from, to }: JobQuery, after: string): Page {
  const { jobs, total } = page;
  if (jobs.some(({ jobId }) => jobId === job.jobId)) {
    return { ...page, jobs: jobs.map((one) => (one.jobId === job.jobId ? job : one)) };
  }
  const newest = jobs[0];
  const isNew = after === '' && (newest === undefined || job.createdAt >= newest.createdAt);
  const matches =
    (status === '' || job.status === status) &&
    (q === '' || nameOf(job).toLowerCase().includes(q.toLowerCase())) &&
    (from === '' || job.createdAt >= from) &&
    (to === '' || job.createdAt <= to);
  return isNew && matches
    ? { ...page, jobs: [job, ...jobs], total: total === undefined ? undefined : total + 1 }
    : page;
}
