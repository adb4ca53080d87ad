/** One endpoint: how it stands, what it missed, and what was sent to it, newest first. */
import { useEffect } from 'preact/hooks';
import type { EndpointDeliveries } from 'soundpost-contract/answers';
import type { z } from 'zod';
import { shortTime } from '../../../shared/time.ts';
import { announce } from '../../announcements.ts';
import { FIRST_PAGE, PAGE, Pages } from '../../pages.tsx';
import { changeQuery } from '../../route.ts';
import { api } from '../../session.ts';
import { Button, Facts, Fault, focusNext, useWork } from '../../ui.tsx';
import { usePolled } from '../../use-polled.ts';
import { deliverySigns, deliveryWords } from '../job/deliveries.tsx';
import { answerWord, type Endpoint, EndpointBadge } from './endpoints.tsx';
import { Resend } from './resend.tsx';

type Sent = z.infer<typeof EndpointDeliveries>['deliveries'][number];

/** The most that the service gives at a time. */
const MOST_AT_A_TIME = 100;
const filters = { '': 'All', failed: 'Failed', pending: 'Pending' } as const;
type Filter = keyof typeof filters;

export function EndpointDetails({
  endpoint,
  query,
}: {
  readonly endpoint: string;
  readonly query: URLSearchParams;
}) {
  const filter = filterOf(query);
  const after = query.get('after') ?? '';
  const asked = {
    limit: PAGE,
    ...(filter === '' ? {} : { status: filter }),
    ...(after === '' ? {} : { cursor: after }),
  };
  const state = usePolled((signal) => findEndpoint(endpoint, signal), {
    about: endpoint,
    mayMove: (found) => found !== null && found.pending > 0,
  });
  const { answer, fault, refresh } = usePolled(
    (signal) => api().deliveriesTo(endpoint, { signal, ...asked }),
    {
      about: query.toString(),
      mayMove: ({ deliveries }) => deliveries.some(({ status }) => status === 'pending'),
    },
  );
  const isKnown = state.answer !== undefined || state.fault !== '';
  useEffect(() => {
    if (isKnown) focusNext('endpoint-title');
  }, [endpoint, isKnown]);
  // All of it at once: one after the other they would push each other down.
  if (!isKnown) return null;
  return (
    <>
      <p>
        <a href="#/webhooks">All endpoints</a>
      </p>
      <section class="card" aria-labelledby="endpoint-title">
        <div class="card-head">
          <h2 id="endpoint-title" class="address" tabIndex={-1}>
            {endpoint}
          </h2>
          {state.answer && <EndpointBadge state={state.answer.state} />}
        </div>
        {state.answer && <EndpointFacts endpoint={state.answer} />}
        <Resend
          endpoint={endpoint}
          failedSince={state.answer?.failedSince ?? undefined}
          onResent={() => {
            state.refresh();
            refresh();
          }}
        />
        <Fault text={state.fault} />
      </section>
      <section class="view" aria-labelledby="sent-title">
        <div class="list-head">
          <h2 id="sent-title">Deliveries</h2>
          <Filters filter={filter} />
        </div>
        <Fault text={fault} id="webhooks-error" />
        {answer === undefined || answer.deliveries.length === 0 ? null : (
          <div class="table-frame">
            <SentTable deliveries={answer.deliveries} onReplayed={refresh} />
          </div>
        )}
        {answer?.deliveries.length === 0 ? <p class="soft">No deliveries.</p> : null}
        <Pages query={query} next={answer?.nextCursor ?? null} />
      </section>
    </>
  );
}

function filterOf(query: URLSearchParams): Filter {
  const status = query.get('status') ?? '';
  return Object.hasOwn(filters, status) ? (status as Filter) : '';
}

/** Null if it was not asked for two days. */
async function findEndpoint(wanted: string, signal: AbortSignal): Promise<Endpoint | null> {
  let cursor: string | null = '';
  while (cursor !== null) {
    const more: { readonly cursor?: string } = cursor === '' ? {} : { cursor };
    const page: Awaited<ReturnType<ReturnType<typeof api>['endpoints']>> = await api().endpoints({
      limit: MOST_AT_A_TIME,
      signal,
      ...more,
    });
    const found = page.endpoints.find(({ endpoint }) => endpoint === wanted);
    if (found !== undefined) return found;
    cursor = page.nextCursor;
  }
  return null;
}

function EndpointFacts({ endpoint }: { readonly endpoint: Endpoint }) {
  const { lastAnswer, lastAt, failedSince, failures, pending } = endpoint;
  return (
    <Facts
      id="endpoint-facts"
      rows={[
        ['Last response', `${answerWord(lastAnswer)} · ${shortTime(lastAt)}`],
        ['Failing since', failedSince && shortTime(failedSince)],
        ['Consecutive failures', String(failures)],
        ['Pending', String(pending)],
      ]}
    />
  );
}

function Filters({ filter }: { readonly filter: Filter }) {
  return (
    <fieldset class="filter-buttons">
      <legend class="visually-hidden">Which deliveries</legend>
      {(Object.keys(filters) as Filter[]).map((one) => (
        <Button
          key={one}
          class="small"
          aria-pressed={filter === one}
          onClick={() => changeQuery({ status: one, ...FIRST_PAGE })}
        >
          {filters[one]}
        </Button>
      ))}
    </fieldset>
  );
}

interface SentProps {
  readonly deliveries: readonly Sent[];
  readonly onReplayed: () => void;
}

function SentTable({ deliveries, onReplayed }: SentProps) {
  return (
    <table class="job-table" aria-labelledby="sent-title">
      <thead>
        <tr>
          <th scope="col">Event</th>
          <th scope="col">State</th>
          <th scope="col">Last response</th>
          <th scope="col">Attempts</th>
          <th scope="col">Time</th>
          <th scope="col">Next attempt</th>
          <th scope="col">
            <span class="visually-hidden">Action</span>
          </th>
        </tr>
      </thead>
      <tbody id="sent">
        {deliveries.map((delivery) => (
          <SentRow key={delivery.deliveryId} delivery={delivery} onReplayed={onReplayed} />
        ))}
      </tbody>
    </table>
  );
}

function SentRow({ delivery, onReplayed }: { readonly delivery: Sent; readonly onReplayed: () => void }) {
  const { deliveryId, jobId, event, status, attempts, createdAt, nextAttemptAt } = delivery;
  const last = attempts.at(-1);
  const { busy, fault, run } = useWork();

  async function replay(): Promise<void> {
    await api().replayDelivery(jobId, deliveryId);
    announce(`Resending ${event}`);
    onReplayed();
  }

  return (
    <tr class="row" data-delivery={deliveryId} data-status={status}>
      <th scope="row">
        <a href={`#/jobs/${jobId}`}>{event}</a>
      </th>
      <td>
        <span class={`status status-${deliverySigns[status]}`}>{deliveryWords[status]}</span>
      </td>
      <td>
        {last === undefined ? '' : (last.httpStatus === null && last.error) || answerWord(last.httpStatus)}
        <Fault text={fault} />
      </td>
      <td class="number">{attempts.length}</td>
      <td class="number">{shortTime(createdAt)}</td>
      <td class="number">{nextAttemptAt === null ? '' : shortTime(nextAttemptAt)}</td>
      <td class="row-actions">
        <Button
          class="small"
          icon="retry"
          aria-label={`Resend ${event} of ${jobId}`}
          busy={busy}
          onClick={() => void run(replay)}
        >
          Resend
        </Button>
      </td>
    </tr>
  );
}
