/** Jobs, newest first, as they move: looking for one, cancelling, trying again, and the same for several. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Job } from '../../../src/contract/job.ts';
import { announce } from '../announcements.ts';
import { cancel, erase, retry } from '../job-actions.ts';
import { JobRow } from '../job-row.tsx';
import { listen, withMoves } from '../live.ts';
import { api, isAborted, sentence } from '../session.ts';
import { Button, confirmed, Fault, focusNext, Icon, useWork, ViewHead } from '../ui.tsx';
import { isUnfinished, mayHelpToRetry, nameOf } from '../words.ts';

const PAGE = 20;
const TYPING_MS = 250;
/** After a list that did not come. */
const AGAIN_MS = 3000;

interface Query {
  readonly q: string;
  readonly status: '' | Job['status'];
}

/** Of the key's jobs those that match, from the newest down to where somebody has looked. */
function useJobs(query: Query) {
  const [jobs, setJobs] = useState<readonly Job[]>();
  const [cursor, setCursor] = useState<string | null>(null);
  const [fault, setFault] = useState('');
  const [freshness, refresh] = useState(0);
  const { q, status } = query;
  useEffect(() => {
    const aborting = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    withMoves(() => loadPage({ q, status }, null, aborting.signal)).then(
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
      const page = await loadPage({ q, status }, cursor, undefined);
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
  { q, status }: Query,
  from: string | null,
  signal: AbortSignal | undefined,
): Promise<{ readonly jobs: readonly Job[]; readonly cursor: string | null }> {
  const jobs: Job[] = [];
  let cursor = from;
  do {
    const page = await api().jobs({
      limit: PAGE,
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
function placed(shown: readonly Job[], job: Job, { q, status }: Query): readonly Job[] {
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

export function History() {
  const [query, setQuery] = useState<Query>({ q: '', status: '' });
  const { jobs, fault, hasMore, more } = useJobs(query);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const work = useWork();
  const list = useRef<HTMLUListElement>(null);
  const isSearch = query.q !== '' || query.status !== '';

  async function showMore(): Promise<void> {
    const first = jobs?.length ?? 0;
    await more();
    requestAnimationFrame(() => list.current?.children[first]?.querySelector('a')?.focus());
  }

  function chooseNone(): void {
    setChosen(new Set());
    focusNext('history-title');
  }

  const picked = (jobs ?? []).filter(({ jobId }) => chosen.has(jobId));
  return (
    <section id="view-history" class="view" aria-labelledby="history-title">
      <ViewHead id="history" title="History">
        <p class="soft">Your jobs, newest first. The list updates itself.</p>
      </ViewHead>
      <Filters query={query} onQuery={(change) => setQuery((now) => ({ ...now, ...change }))} />
      <p id="history-note" class="visually-hidden" role="status">
        {jobs === undefined ? '' : jobs.length === 0 ? 'No jobs' : `${counted(jobs.length)} shown`}
      </p>
      <Fault text={fault || work.fault} id="history-error" />
      {picked.length === 0 ? null : <BulkActions jobs={picked} work={work} onDone={chooseNone} />}
      <ul id="jobs" class="rows" aria-label="Jobs" ref={list}>
        {jobs?.map((job) => (
          <JobRow
            key={job.jobId}
            job={job}
            onFault={work.setFault}
            isChosen={chosen.has(job.jobId)}
            onChoose={(isChosen) => setChosen(withOrWithout(chosen, job.jobId, isChosen))}
          />
        ))}
      </ul>
      {jobs?.length === 0 ? <Empty isSearch={isSearch} /> : null}
      {hasMore ? (
        <Button id="history-more" class="wide" busy={work.busy} onClick={() => void work.run(showMore)}>
          Show older jobs
        </Button>
      ) : null}
    </section>
  );
}

const counted = (jobs: number): string => (jobs === 1 ? '1 job' : `${jobs} jobs`);

function withOrWithout(chosen: ReadonlySet<string>, jobId: string, isChosen: boolean): ReadonlySet<string> {
  const next = new Set(chosen);
  if (isChosen) next.add(jobId);
  else next.delete(jobId);
  return next;
}

interface FiltersProps {
  readonly query: Query;
  /** What is typed is told a little later: by then the state may be another one, and stays. */
  readonly onQuery: (change: Partial<Query>) => void;
}

function Filters({ query, onQuery }: FiltersProps) {
  const typing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const search = useRef<HTMLInputElement>(null);
  const apply = (): void => onQuery({ q: search.current?.value.trim() ?? '' });
  useEffect(() => () => clearTimeout(typing.current), []);
  return (
    <search aria-label="Jobs">
      <form
        id="history-form"
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <div class="search-field">
          <Icon name="search" />
          <label class="visually-hidden" for="search">
            Search by name, address or id
          </label>
          <input
            id="search"
            type="search"
            maxLength={200}
            placeholder="Name, address or id"
            autocomplete="off"
            ref={search}
            onInput={() => {
              clearTimeout(typing.current);
              typing.current = setTimeout(apply, TYPING_MS);
            }}
          />
        </div>
        <label class="visually-hidden" for="status-filter">
          State
        </label>
        <select
          id="status-filter"
          value={query.status}
          onChange={({ currentTarget }) => onQuery({ status: currentTarget.value as Query['status'] })}
        >
          <option value="">All states</option>
          <option value="queued">Waiting</option>
          <option value="processing">Working</option>
          <option value="completed">Completed</option>
          <option value="failed">Failed</option>
        </select>
      </form>
    </search>
  );
}

interface BulkProps {
  readonly jobs: readonly Job[];
  readonly work: ReturnType<typeof useWork>;
  readonly onDone: () => void;
}

function BulkActions({ jobs, work, onDone }: BulkProps) {
  const running = jobs.filter(isUnfinished);
  const again = jobs.filter(mayHelpToRetry);
  const finished = jobs.filter(({ outputFile }) => outputFile?.url !== undefined);

  /** All at once; the first that fails is said, and the rest is done all the same. */
  function all(chosen: readonly Job[], what: string, act: (job: Job) => Promise<unknown>): void {
    void work.run(async () => {
      const results = await Promise.allSettled(chosen.map(act));
      const failed = results.find((result) => result.status === 'rejected');
      announce(`${results.filter(({ status }) => status === 'fulfilled').length} ${what}`);
      onDone();
      if (failed !== undefined) throw failed.reason;
    });
  }

  async function eraseAll(): Promise<void> {
    const sure = await confirmed({
      title: `Erase the files of ${counted(finished.length)}?`,
      text: 'The files are removed from the service, and their addresses no longer work. The jobs stay in the history.',
      yes: 'Erase them',
    });
    if (sure) all(finished, 'erased', (job) => erase(job.jobId));
  }

  return (
    <fieldset class="bulk card">
      <legend class="visually-hidden">Chosen jobs</legend>
      <strong class="bulk-count">{jobs.length} chosen</strong>
      {running.length === 0 ? null : (
        <Button
          class="small danger"
          icon="close"
          busy={work.busy}
          onClick={() => all(running, 'cancelled', (job) => cancel(job.jobId))}
        >
          Cancel {running.length}
        </Button>
      )}
      {again.length === 0 ? null : (
        <Button
          class="small"
          icon="retry"
          busy={work.busy}
          onClick={() => all(again, 'begun again', (job) => retry(job.jobId))}
        >
          Try {again.length} again
        </Button>
      )}
      {finished.length === 0 ? null : (
        <Button class="small" icon="bin" busy={work.busy} onClick={() => void eraseAll()}>
          Erase {finished.length}
        </Button>
      )}
      {running.length + again.length + finished.length === 0 ? (
        <span class="soft">Nothing can be done with these.</span>
      ) : null}
      <Button class="small plain" onClick={onDone}>
        Choose none
      </Button>
    </fieldset>
  );
}

function Empty({ isSearch }: { readonly isSearch: boolean }) {
  return (
    <div id="history-empty" class="card empty">
      <Icon name="history" />
      <h2>{isSearch ? 'Nothing found' : 'Nothing here yet'}</h2>
      <p class="soft">
        {isSearch
          ? 'No job matches. Try fewer letters, or all states.'
          : 'Your jobs will be listed here, with their results.'}
      </p>
      <a class="button primary" href="#/">
        New extraction
      </a>
    </div>
  );
}
