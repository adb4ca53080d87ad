/** The key's jobs, newest first, a page at a time, as they move. Filters, page and chosen rows stand in the address. */
import { useRef, useState } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { changeQuery } from '../../route.ts';
import { Button, Fault, focusNext, Icon, useWork, ViewHead } from '../../ui.tsx';
import { allJobs, type JobQuery, useJobs } from '../../use-jobs.ts';
import { counted } from '../../words.ts';
import { BulkActions } from './bulk-actions.tsx';
import { moments } from './days.ts';
import { Filters, states } from './filters.tsx';
import { JobTable } from './job-table.tsx';

const PAGE = 50;

export function History({ query }: { readonly query: URLSearchParams }) {
  const asked = jobQuery(query);
  const after = query.get('after') ?? '';
  const number = Number(query.get('page') ?? 1) || 1;
  const { page, fault } = useJobs(asked, PAGE, after);
  const work = useWork();
  const chosen = useChosen(query, page?.jobs ?? []);
  const table = useRef<HTMLDivElement>(null);

  function turnTo(cursor: string, next: number): void {
    changeQuery({ after: cursor, page: next === 1 ? '' : String(next), chosen: '' }, true);
    chosen.choose([]);
    table.current?.focus();
  }

  function chooseNone(): void {
    chosen.choose([]);
    focusNext('history-title');
  }

  const shown = page?.jobs ?? [];
  const isWholePage = shown.length > 0 && shown.every(({ jobId }) => chosen.ids.has(jobId));
  const hasOthers = after !== '' || (page?.cursor ?? null) !== null;
  return (
    <section id="view-history" class="view" aria-labelledby="history-title">
      <ViewHead id="history" title="History">
        <p class="soft">Your jobs, newest first. The list updates itself.</p>
      </ViewHead>
      <Filters query={query} />
      <p id="history-note" class="soft" role="status">
        {page === undefined ? '' : summary(shown.length, number, page.total)}
      </p>
      <Fault text={fault || work.fault} id="history-error" />
      {chosen.jobs.length === 0 ? null : (
        <BulkActions jobs={chosen.jobs} work={work} onDone={chooseNone}>
          {isWholePage && hasOthers && !chosen.isAll ? (
            <ChooseMatching query={asked} total={page?.total} work={work} onChosen={chosen.chooseAll} />
          ) : null}
        </BulkActions>
      )}
      <div ref={table} tabIndex={-1} class="table-frame">
        {shown.length === 0 ? null : (
          <JobTable jobs={shown} chosen={chosen.ids} onChoose={chosen.choose} onFault={work.setFault} />
        )}
      </div>
      {page?.jobs.length === 0 ? <Empty isSearch={isFiltered(asked)} /> : null}
      {hasOthers ? <Pages number={number} after={after} next={page?.cursor ?? null} onTurn={turnTo} /> : null}
    </section>
  );
}

interface ChooseMatchingProps {
  readonly query: JobQuery;
  /** Undefined where the service does not know it. */
  readonly total: number | undefined;
  readonly work: ReturnType<typeof useWork>;
  readonly onChosen: (jobs: readonly Job[]) => void;
}

/** Chooses what matches on the other pages too. */
function ChooseMatching({ query, total, work, onChosen }: ChooseMatchingProps) {
  const [found, setFound] = useState(0);
  const words = total === undefined ? 'Choose all that match' : `Choose all ${total.toLocaleString()}`;
  return (
    <Button
      class="small plain"
      id="choose-matching"
      busy={work.busy}
      onClick={() => void work.run(async () => onChosen(await allJobs(query, setFound)))}
    >
      {found === 0 ? words : `${found.toLocaleString()} found`}
    </Button>
  );
}

interface PagesProps {
  readonly number: number;
  readonly after: string;
  /** Where the next page begins; null for none. */
  readonly next: string | null;
  readonly onTurn: (cursor: string, number: number) => void;
}

function Pages({ number, after, next, onTurn }: PagesProps) {
  return (
    <nav class="pages" aria-label="Pages">
      <Button id="newest" disabled={after === ''} onClick={() => onTurn('', 1)}>
        Newest
      </Button>
      <span class="soft">Page {number}</span>
      <Button id="older" disabled={next === null} onClick={() => onTurn(next ?? '', number + 1)}>
        Older
      </Button>
    </nav>
  );
}

const isFiltered = (query: JobQuery): boolean => Object.values(query).some((value) => value !== '');

/** What the address asks for; what it cannot mean is left out. */
function jobQuery(query: URLSearchParams): JobQuery {
  const status = states.find((state) => state === query.get('status')) ?? '';
  const days = moments({ from: query.get('from') ?? '', to: query.get('to') ?? '' });
  return { q: query.get('q') ?? '', status, ...days };
}

/** `2,000 jobs · 51 to 100` */
function summary(count: number, number: number, total: number | undefined): string {
  if (count === 0) return 'No jobs';
  const first = (number - 1) * PAGE + 1;
  const range = `${first.toLocaleString()} to ${(first + count - 1).toLocaleString()}`;
  if (total === undefined) return number === 1 && count < PAGE ? counted(count) : range;
  return total <= count ? counted(total) : `${total.toLocaleString()} jobs · ${range}`;
}

/** The chosen rows of the page, which the address names, or all jobs that match, which it does not. */
function useChosen(query: URLSearchParams, shown: readonly Job[]) {
  const [all, setAll] = useState<readonly Job[]>();
  const ids = new Set(all?.map(({ jobId }) => jobId) ?? query.get('chosen')?.split(',') ?? []);
  return {
    ids,
    isAll: all !== undefined,
    jobs: all ?? shown.filter(({ jobId }) => ids.has(jobId)),
    choose(chosen: readonly string[]): void {
      setAll(undefined);
      changeQuery({ chosen: chosen.join(',') });
    },
    chooseAll: setAll,
  };
}

function Empty({ isSearch }: { readonly isSearch: boolean }) {
  return (
    <div id="history-empty" class="card empty">
      <Icon name="history" />
      <h2>{isSearch ? 'Nothing found' : 'Nothing here yet'}</h2>
      <p class="soft">
        {isSearch
          ? 'No job matches. Try fewer letters, another day, or all states.'
          : 'Your jobs will be listed here, with their results.'}
      </p>
      <a class="button primary" href="#/">
        New extraction
      </a>
    </div>
  );
}
