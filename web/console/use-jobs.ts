/** A list of jobs that keeps itself up to date: of the key's jobs those that match, from the newest down to where somebody has looked. */
import { useEffect, useState } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { listen, withMoves } from './live.ts';
import { api, isAborted, sentence } from './session.ts';
import { nameOf } from './words.ts';

/** After a list that did not come. */
const AGAIN_MS = 3000;

export interface JobQuery {
  readonly q: string;
  readonly status: '' | Job['status'];
}

/** @param pageSize how many are asked for at a time, at most 100 */
export function useJobs({ q, status }: JobQuery, pageSize: number) {
  const [jobs, setJobs] = useState<readonly Job[]>();
  const [cursor, setCursor] = useState<string | null>(null);
  const [fault, setFault] = useState('');
  const [freshness, refresh] = useState(0);
  useEffect(() => {
    const aborting = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    withMoves(() => loadPage({ q, status }, pageSize, null, aborting.signal)).then(
      ({ answer: page, moved }) => {
        setJobs([...moved.values()].reduce((list, job) => placed(list, job, { q, status }), page.jobs));
        setCursor(page.cursor);
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
  }, [q, status, freshness]);
  useEffect(
    () =>
      listen({
        // What was missed is not told: the list is asked for again.
        onFresh: () => refresh((times) => times + 1),
        onJob: (job) => setJobs((shown) => shown && placed(shown, job, { q, status })),
      }),
    [q, status],
  );
  return {
    jobs,
    fault,
    hasMore: cursor !== null,
    async more() {
      const page = await loadPage({ q, status }, pageSize, cursor, undefined);
      setJobs((shown = []) => [
        ...shown,
        ...page.jobs.filter(({ jobId }) => !shown.some((one) => one.jobId === jobId)),
      ]);
      setCursor(page.cursor);
    },
  };
}

/** A page may hold fewer than were asked for, even none, although more follow. */
async function loadPage(
  { q, status }: JobQuery,
  limit: number,
  from: string | null,
  signal: AbortSignal | undefined,
): Promise<{ readonly jobs: readonly Job[]; readonly cursor: string | null }> {
  const jobs: Job[] = [];
  let cursor = from;
  do {
    const page = await api().jobs({
      limit,
      signal,
      ...(q === '' ? {} : { q }),
      ...(status === '' ? {} : { status }),
      ...(cursor === null ? {} : { cursor }),
    });
    jobs.push(...page.jobs);
    cursor = page.nextCursor;
  } while (jobs.length === 0 && cursor !== null);
  return { jobs, cursor };
}

/** The list with a job that has come or moved: a known one in its place, a new one on top where it matches. */
function placed(shown: readonly Job[], job: Job, { q, status }: JobQuery): readonly Job[] {
  if (shown.some(({ jobId }) => jobId === job.jobId)) {
    return shown.map((one) => (one.jobId === job.jobId ? job : one));
  }
  const newest = shown[0];
  const isNew = newest === undefined || job.createdAt >= newest.createdAt;
  const matches =
    (status === '' || job.status === status) &&
    (q === '' || nameOf(job).toLowerCase().includes(q.toLowerCase()));
  return isNew && matches ? [job, ...shown] : shown;
}
