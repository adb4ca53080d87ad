/** Deliveries by job, newest first, of those jobs that name a webhook. */
import { useEffect, useState } from 'preact/hooks';
import type { Delivery } from '../../../../src/contract/answers.ts';
import type { Job } from '../../../../src/contract/job.ts';
import { shortTime } from '../../../shared/time.ts';
import { api, isAborted, sentence } from '../../session.ts';
import { Button, Fault, Icon, useWork } from '../../ui.tsx';
import { nameOf } from '../../words.ts';
import { Deliveries } from '../job/deliveries.tsx';

/** Jobs looked at for one page; most of them may name no webhook. */
const PAGE = 50;
const LOOK_MS = 3000;
/** The newest ones may still move. */
const MOVING = 10;

type Filter = 'all' | 'failed' | 'pending';
const filters: Readonly<Record<Filter, string>> = { all: 'All', failed: 'Failed', pending: 'On their way' };

interface Told {
  readonly job: Job;
  readonly deliveries: readonly Delivery[];
  /** Why its deliveries are not known: it may have been erased meanwhile. */
  readonly fault: string;
}

export function JobsDeliveries() {
  const { told, hasMore, fault, more, setDeliveries } = useTold();
  const [filter, setFilter] = useState<Filter>('all');
  const { busy, fault: moreFault, run } = useWork();
  const shown = (told ?? []).map((one) => matching(one, filter)).filter((one) => one !== undefined);
  return (
    <section class="view" aria-labelledby="jobs-deliveries-title">
      <div class="list-head">
        <h2 id="jobs-deliveries-title">Deliveries</h2>
        <Filters filter={filter} onFilter={setFilter} />
      </div>
      <Fault text={fault || moreFault} id="webhooks-error" />
      <ul id="webhook-jobs" class="webhook-jobs" aria-label="Jobs with a webhook">
        {shown.map(({ job, deliveries, fault: wrong }) => (
          <li key={job.jobId} class="card" data-job={job.jobId}>
            <div class="card-head">
              <h3>
                <a href={`#/jobs/${job.jobId}`}>{nameOf(job)}</a>
              </h3>
              <span class="soft">{shortTime(job.createdAt)}</span>
            </div>
            <p class="soft address">{job.options.webhook}</p>
            <Deliveries
              jobId={job.jobId}
              deliveries={deliveries}
              onDeliveries={(changed) => setDeliveries(job.jobId, changed)}
            />
            <Fault text={wrong} />
          </li>
        ))}
      </ul>
      {told !== undefined && shown.length === 0 ? <Empty filter={filter} hasMore={hasMore} /> : null}
      {hasMore ? (
        <Button id="webhooks-more" class="wide" busy={busy} onClick={() => void run(more)}>
          Look at older jobs
        </Button>
      ) : null}
    </section>
  );
}

function Filters({
  filter,
  onFilter,
}: {
  readonly filter: Filter;
  readonly onFilter: (filter: Filter) => void;
}) {
  return (
    <fieldset class="filter-buttons">
      <legend class="visually-hidden">Which deliveries</legend>
      {(Object.keys(filters) as Filter[]).map((one) => (
        <Button key={one} class="small" aria-pressed={filter === one} onClick={() => onFilter(one)}>
          {filters[one]}
        </Button>
      ))}
    </fieldset>
  );
}

function matching(told: Told, filter: Filter): Told | undefined {
  if (filter === 'all') return told;
  const deliveries = told.deliveries.filter(({ status }) => status === filter);
  return deliveries.length === 0 ? undefined : { ...told, deliveries };
}

function useTold() {
  const [told, setTold] = useState<readonly Told[]>();
  const [cursor, setCursor] = useState<string | null>(null);
  const [fault, setFault] = useState('');
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function lookAgain(first: readonly Told[]): Promise<void> {
      const found = await Promise.all(first.slice(0, MOVING).map(({ job }) => tell(job, signal)));
      setTold((shown = []) => shown.map((one) => changed(one, found)));
      timer = setTimeout(() => lookAgain(first).catch(failed), LOOK_MS);
    }
    function failed(error: unknown): void {
      if (!isAborted(error)) setFault(sentence(error));
    }
    loadPage(null, signal)
      .then((page) => {
        setTold(page.told);
        setCursor(page.cursor);
        timer = setTimeout(() => lookAgain(page.told).catch(failed), LOOK_MS);
      })
      .catch(failed);
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, []);
  return {
    told,
    fault,
    hasMore: cursor !== null,
    async more() {
      const page = await loadPage(cursor, undefined);
      setTold((shown = []) => [...shown, ...page.told]);
      setCursor(page.cursor);
    },
    setDeliveries(jobId: string, deliveries: readonly Delivery[]) {
      setTold((shown = []) => shown.map((one) => (one.job.jobId === jobId ? { ...one, deliveries } : one)));
    },
  };
}

async function loadPage(from: string | null, signal: AbortSignal | undefined) {
  const { jobs, nextCursor } = await api().jobs({
    limit: PAGE,
    signal,
    ...(from === null ? {} : { cursor: from }),
  });
  const named = jobs.filter(({ options }) => options.webhook !== undefined);
  return { told: await Promise.all(named.map((job) => tell(job, signal))), cursor: nextCursor };
}

async function tell(job: Job, signal: AbortSignal | undefined): Promise<Told> {
  try {
    return { job, deliveries: (await api().deliveries(job.jobId, { signal })).deliveries, fault: '' };
  } catch (error) {
    if (isAborted(error)) throw error;
    return { job, deliveries: [], fault: sentence(error) };
  }
}

/** As it was where nothing is new, so that nothing is drawn again. */
function changed(shown: Told, found: readonly Told[]): Told {
  const now = found.find(({ job }) => job.jobId === shown.job.jobId);
  // One that could not be asked for once keeps what is known of it.
  if (now === undefined || now.fault !== '') return shown;
  return JSON.stringify(now.deliveries) === JSON.stringify(shown.deliveries) && shown.fault === ''
    ? shown
    : now;
}

function Empty({ filter, hasMore }: { readonly filter: Filter; readonly hasMore: boolean }) {
  const among = hasMore ? 'None of the latest jobs' : 'No job';
  return (
    <div id="webhooks-empty" class="card empty">
      <Icon name="webhooks" />
      <h3>No deliveries</h3>
      {filter === 'all' ? (
        <>
          <p class="soft">
            A job that names a webhook tells it when it has ended. Name one under “More choices”.
          </p>
          <a class="button primary" href="#/">
            New extraction
          </a>
        </>
      ) : (
        <p class="soft">{`${among} has one that ${filter === 'failed' ? 'was given up' : 'is on its way'}.`}</p>
      )}
    </div>
  );
}
