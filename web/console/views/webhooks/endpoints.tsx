/** The endpoints that webhooks are posted to, asked last first: how each stands, in one row. */
import type { ComponentChildren } from 'preact';
import type { EndpointList } from 'soundpost-contract/answers';
import type { z } from 'zod';
import { shortTime } from '../../../shared/time.ts';
import { PAGE, Pages } from '../../pages.tsx';
import { api } from '../../session.ts';
import { Fault, Icon } from '../../ui.tsx';
import { usePolled } from '../../use-polled.ts';

export type Endpoint = z.infer<typeof EndpointList>['endpoints'][number];

interface EndpointsProps {
  readonly query: URLSearchParams;
  /** Comes below the list, and with it: it would be pushed down. */
  readonly children: ComponentChildren;
}

export function Endpoints({ query, children }: EndpointsProps) {
  const after = query.get('after') ?? '';
  const page = { limit: PAGE, ...(after === '' ? {} : { cursor: after }) };
  const { answer, fault } = usePolled((signal) => api().endpoints({ signal, ...page }), {
    about: after,
    mayMove: ({ endpoints }) => endpoints.some(({ pending }) => pending > 0),
  });
  return (
    <section class="view" aria-labelledby="endpoints-title">
      <h2 id="endpoints-title">Endpoints</h2>
      <Fault text={fault} id="webhooks-error" />
      {answer === undefined || answer.endpoints.length === 0 ? null : (
        <div class="table-frame">
          <EndpointTable endpoints={answer.endpoints} />
        </div>
      )}
      {answer?.endpoints.length === 0 ? <Empty /> : null}
      <Pages query={query} next={answer?.nextCursor ?? null} />
      {answer === undefined && fault === '' ? null : children}
    </section>
  );
}

function EndpointTable({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  return (
    <table class="job-table" aria-labelledby="endpoints-title">
      <thead>
        <tr>
          <th scope="col">Endpoint</th>
          <th scope="col">State</th>
          <th scope="col">Last response</th>
          <th scope="col">Failing since</th>
          <th scope="col">Consecutive failures</th>
          <th scope="col">Pending</th>
          <th scope="col">Last attempt</th>
        </tr>
      </thead>
      <tbody id="endpoints">
        {endpoints.map(({ endpoint, state, lastAnswer, failedSince, failures, pending, lastAt }) => (
          <tr key={endpoint} class="row" data-endpoint={endpoint} data-state={state}>
            <th scope="row" class="row-main">
              <a href={`#/webhooks?${new URLSearchParams({ endpoint })}`}>{endpoint}</a>
            </th>
            <td>
              <EndpointBadge state={state} />
            </td>
            <td class="number">{answerWord(lastAnswer)}</td>
            <td class="number">{failedSince === null ? '' : shortTime(failedSince)}</td>
            <td class="number">{failures}</td>
            <td class="number">{pending}</td>
            <td class="number">{shortTime(lastAt)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export const answerWord = (status: number | null): string =>
  status === null ? 'No response' : `HTTP ${status}`;

export function EndpointBadge({ state }: { readonly state: Endpoint['state'] }) {
  return (
    <span class={`status status-${state === 'ok' ? 'completed' : 'failed'}`}>
      {state === 'ok' ? 'Working' : 'Failing'}
    </span>
  );
}

function Empty() {
  return (
    <div id="webhooks-empty" class="card empty">
      <Icon name="webhooks" />
      <h3>No endpoints</h3>
      <p class="soft">
        Nothing sent in the last two days. To receive webhooks, set one under “More options” when you submit a
        job.
      </p>
      <a class="button primary" href="#/">
        New extraction
      </a>
    </div>
  );
}
