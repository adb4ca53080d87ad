/**
 * The key's jobs, newest first, a page at a time, as they move. Filters, page and chosen rows stand
 * in the address.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { PAGE, Pages } from '../../pages.tsx';
import { changeQuery } from '../../route.ts';
import { isAborted, sentence } from '../../session.ts';
import { Button, Fault, focusNext, Icon, ViewHead } from '../../ui.tsx';
import { allJobs, type JobQuery, useJobs } from '../../use-jobs.ts';
import { counted } from '../../words.ts';
import { CopyNote, useCopy } from '../job/copy.tsx';
import { BulkActions, BulkProgress } from './bulk-actions.tsx';
import { moments } from './days.ts';
import { Filters, states } from './filters.tsx';
import { JobTable } from './job-table.tsx';

/** In the address, for every job that matches. */
const ALL = 'all';

export function History({ query }: { readonly query: URLSearchParams }) {
  const asked = jobQuery(query);
  const after = query.get('after') ?? '';
  const number = Number(query.get('page') ?? 1) || 1;
  const { page, fault } = useJobs(asked, PAGE, after);
  const [ownFault, setFault] = useState('');
  const chosen = useChosen(query, asked, page?.jobs ?? [], setFault);
  const isFirst = useRef(true);
  useEffect(() => {
    // Whoever has pressed a filter stays there.
    if (!isFirst.current && document.activeElement?.closest('.filters') == null) {
      scrollTo(0, 0);
      focusNext('history-note');
    }
    isFirst.current = false;
  }, [after]);

  function clear(): void {
    chosen.choose([]);
    focusNext('history-title');
  }

  const shown = page?.jobs ?? [];
  const hasOthers = after !== '' || (page?.cursor ?? null) !== null;
  return (
    <section id="view-history" class="view history" aria-labelledby="history-title">
      <ViewHead id="history" title="History" />
      <Filters query={query} />
      <Fault text={fault || ownFault} id="history-error" />
      <BulkProgress onDone={clear} />
      <BulkActions jobs={chosen.jobs} coming={chosen.coming} onClear={clear} />
      <TableHead
        range={page === undefined ? 'Loading…' : summary(shown.length, number, page.total)}
        total={page?.total}
        onAll={hasOthers && !chosen.isAll && shown.length > 0 ? () => chosen.choose(ALL) : undefined}
      />
      {shown.length === 0 ? null : (
        <div class="table-frame">
          <JobTable jobs={shown} chosen={chosen.ids} onChoose={chosen.choose} onFault={setFault} />
        </div>
      )}
      {page?.jobs.length === 0 ? <Empty isSearch={isFiltered(asked)} /> : null}
      <Pages query={query} next={page?.cursor ?? null} />
    </section>
  );
}

interface TableHeadProps {
  readonly range: string;
  /** Undefined where the service does not know it. */
  readonly total: number | undefined;
  /** Undefined where there is nothing more to select. */
  readonly onAll: (() => void) | undefined;
}

function TableHead({ range, total, onAll }: TableHeadProps) {
  const { copied, copy } = useCopy();
  return (
    <>
      <div class="table-head">
        <p id="history-note" class="soft" role="status" tabIndex={-1}>
          {range}
        </p>
        {onAll === undefined ? null : (
          <Button id="select-all" class="small plain" onClick={onAll}>
            {total === undefined ? 'Select all that match' : `Select all ${total.toLocaleString()}`}
          </Button>
        )}
        <Button
          id="copy-link"
          class="small plain"
          icon="link"
          onClick={() => void copy(location.href, 'Link to this list copied.')}
        >
          Copy link
        </Button>
      </div>
      <CopyNote copied={copied} id="link-copied" />
    </>
  );
}

const isFiltered = (query: JobQuery): boolean => Object.values(query).some((value) => value !== '');

/** What the address asks for; what it cannot mean is left out. */
function jobQuery(query: URLSearchParams): JobQuery {
  const status = states.find((state) => state === query.get('status')) ?? '';
  const days = moments({ from: query.get('from') ?? '', to: query.get('to') ?? '' });
  return { q: query.get('q') ?? '', status, ...days };
}

/** `51–100 of 2,000 jobs` */
function summary(count: number, number: number, total: number | undefined): string {
  if (count === 0) return 'No jobs';
  const first = (number - 1) * PAGE + 1;
  const isWhole = number === 1 && count < PAGE;
  if (isWhole) return counted(total ?? count);
  const range = `${first.toLocaleString()}–${(first + count - 1).toLocaleString()}`;
  return total === undefined ? `${range} of the matches` : `${range} of ${counted(total)}`;
}

/** The chosen rows of the page, or all jobs that match: as the address says. */
function useChosen(
  query: URLSearchParams,
  asked: JobQuery,
  shown: readonly Job[],
  onFault: (text: string) => void,
) {
  const named = query.get('chosen') ?? '';
  const isAll = named === ALL;
  const [all, setAll] = useState<readonly Job[]>();
  const [count, setCount] = useState(0);
  useEffect(() => {
    setAll(undefined);
    setCount(0);
    if (!isAll) return;
    const ending = new AbortController();
    allJobs(asked, setCount, ending.signal).then(setAll, (error: unknown) => {
      if (!isAborted(error)) onFault(sentence(error));
    });
    return () => ending.abort();
  }, [isAll, ...Object.values(asked)]);
  const ids = new Set(isAll ? shown.map(({ jobId }) => jobId) : named.split(','));
  return {
    ids,
    isAll,
    jobs: isAll ? (all ?? []) : shown.filter(({ jobId }) => ids.has(jobId)),
    /** How many are found so far; undefined once all are. */
    coming: isAll && all === undefined ? count : undefined,
    choose: (chosen: readonly string[] | typeof ALL): void =>
      changeQuery({ chosen: chosen === ALL ? ALL : chosen.join(',') }),
  };
}

function Empty({ isSearch }: { readonly isSearch: boolean }) {
  return (
    <div id="history-empty" class="card empty">
      <Icon name="history" />
      <h2>{isSearch ? 'No matching jobs' : 'No jobs yet'}</h2>
      <p class="soft">
        {isSearch
          ? 'Try a shorter search, other days, or all states.'
          : 'Your jobs and their results appear here.'}
      </p>
      <a class="button primary" href="#/">
        New extraction
      </a>
    </div>
  );
}
