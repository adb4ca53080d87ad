/** Jobs, newest first, as they move. */
import { useRef, useState } from 'preact/hooks';
import { JobRow } from '../../job-row.tsx';
import { Button, Fault, focusNext, Icon, useWork, ViewHead } from '../../ui.tsx';
import { type JobQuery, useJobs } from '../../use-jobs.ts';
import { counted } from '../../words.ts';
import { BulkActions } from './bulk-actions.tsx';
import { Filters } from './filters.tsx';

const PAGE = 20;

export function History() {
  const [query, setQuery] = useState<JobQuery>({ q: '', status: '' });
  const { jobs, fault, hasMore, more } = useJobs(query, PAGE);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const work = useWork();
  const list = useRef<HTMLUListElement>(null);
  const isSearch = query.q !== '' || query.status !== '';

  async function showMore(): Promise<void> {
    const first = jobs?.length ?? 0;
    await more();
    requestAnimationFrame(() => list.current?.children[first]?.querySelector('a')?.focus());
  }

  function chooseNone(): void {
    setChosen([]);
    focusNext('history-title');
  }

  const picked = (jobs ?? []).filter(({ jobId }) => chosen.includes(jobId));
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
            isChosen={chosen.includes(job.jobId)}
            onChoose={(isChosen) =>
              setChosen(isChosen ? [...chosen, job.jobId] : chosen.filter((id) => id !== job.jobId))
            }
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
