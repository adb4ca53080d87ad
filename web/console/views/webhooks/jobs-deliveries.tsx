/** Deliveries by job, newest first, of those jobs that name a webhook. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Delivery } from 'soundpost-contract/answers';
import type { Job } from 'soundpost-contract/job';
import { shortTime } from '../../../shared/time.ts';
import { Button, Fault, Icon } from '../../ui.tsx';
import { NO_FILTER, useJobs } from '../../use-jobs.ts';
import { nameOf } from '../../words.ts';
import { Deliveries } from '../job/deliveries.tsx';
import { useDeliveries } from '../job/use-deliveries.ts';

/** Jobs asked for at a time; most of them may name no webhook. */
const PAGE = 50;

type Filter = 'all' | 'failed' | 'pending';
const filters: Readonly<Record<Filter, string>> = { all: 'All', failed: 'Failed', pending: 'On their way' };

export function JobsDeliveries() {
  const [after, setAfter] = useState('');
  const { page, fault } = useJobs(NO_FILTER, PAGE, after);
  const [filter, setFilter] = useState<Filter>('all');
  /** By the job's id. */
  const [told, setTold] = useState<Readonly<Record<string, readonly Delivery[]>>>({});
  const isReady = useRef(false);
  const named = page?.jobs.filter(({ options }) => options.webhook !== undefined) ?? [];
  const hasMore = (page?.cursor ?? null) !== null;
  // At first all of them at once: one after the other they would push each other down.
  isReady.current ||= page !== undefined && named.every(({ jobId }) => told[jobId] !== undefined);
  const isEmpty = !named.some(({ jobId }) => isShown(told[jobId], filter));
  return (
    <section class="view" aria-labelledby="jobs-deliveries-title">
      <div class="list-head">
        <h2 id="jobs-deliveries-title">Deliveries</h2>
        <Filters filter={filter} onFilter={setFilter} />
      </div>
      <Fault text={fault} id="webhooks-error" />
      <ul id="webhook-jobs" class="webhook-jobs" aria-label="Jobs with a webhook" hidden={!isReady.current}>
        {named.map((job) => (
          <DeliveriesOfJob
            key={job.jobId}
            job={job}
            filter={filter}
            onTold={(deliveries) => setTold((before) => ({ ...before, [job.jobId]: deliveries }))}
          />
        ))}
      </ul>
      {isReady.current && isEmpty ? <Empty filter={filter} hasMore={hasMore} /> : null}
      {hasMore ? (
        <Button id="webhooks-more" class="wide" onClick={() => setAfter(page?.cursor ?? '')}>
          Look at older jobs
        </Button>
      ) : null}
    </section>
  );
}

const isMeant = ({ status }: Delivery, filter: Filter): boolean => filter === 'all' || status === filter;

/** Whether a job with these deliveries stands in the list. @param deliveries undefined until they are known */
const isShown = (deliveries: readonly Delivery[] | undefined, filter: Filter): boolean =>
  deliveries !== undefined && (filter === 'all' || deliveries.some((one) => isMeant(one, filter)));

interface OfJobProps {
  readonly job: Job;
  readonly filter: Filter;
  readonly onTold: (deliveries: readonly Delivery[]) => void;
}

function DeliveriesOfJob({ job, filter, onTold }: OfJobProps) {
  const { deliveries, fault, setDeliveries } = useDeliveries(job);
  useEffect(() => {
    if (deliveries !== undefined) onTold(deliveries);
  }, [deliveries]);
  if (deliveries === undefined || !isShown(deliveries, filter)) return null;
  return (
    <li class="card" data-job={job.jobId}>
      <div class="card-head">
        <h3>
          <a href={`#/jobs/${job.jobId}`}>{nameOf(job)}</a>
        </h3>
        <span class="soft">{shortTime(job.createdAt)}</span>
      </div>
      <p class="soft address">{job.options.webhook}</p>
      <Deliveries
        jobId={job.jobId}
        deliveries={deliveries.filter((one) => isMeant(one, filter))}
        onDeliveries={setDeliveries}
      />
      <Fault text={fault} />
    </li>
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
        <p class="soft">{`${among} has one that ${filter === 'failed' ? 'failed' : 'is on its way'}.`}</p>
      )}
    </div>
  );
}
