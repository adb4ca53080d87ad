/** What follows a job, each try of it, and sending a webhook again. */
import { useEffect, useState } from 'preact/hooks';
import type { Delivery } from 'soundpost-contract/answers';
import type { Job } from 'soundpost-contract/job';
import { shortTime } from '../../../shared/time.ts';
import { announce } from '../../announcements.ts';
import { DeliveryBody } from '../../delivery-body.tsx';
import { api } from '../../session.ts';
import { Button, Fault, useWork } from '../../ui.tsx';
import { isUnfinished, type ShownStatus } from '../../words.ts';
import { useDeliveries } from './use-deliveries.ts';

export const deliveryWords: Readonly<Record<Delivery['status'], string>> = {
  pending: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
};
export const deliverySigns: Readonly<Record<Delivery['status'], ShownStatus>> = {
  pending: 'processing',
  delivered: 'completed',
  failed: 'failed',
};

/** Of the job in its own view, for as long as it is open. */
export function JobDeliveries({ job }: { readonly job: Job }) {
  const { deliveries, fault, setDeliveries } = useDeliveries(job);
  if (job.options.webhook === undefined || isUnfinished(job)) return null;
  return (
    <section id="job-deliveries" class="card" aria-labelledby="deliveries-title">
      <div class="card-head">
        <h2 id="deliveries-title">Webhook deliveries</h2>
      </div>
      <Fault text={fault} id="deliveries-away" />
      {deliveries === undefined ? null : (
        <Deliveries
          jobId={job.jobId}
          deliveries={deliveries}
          onDeliveries={setDeliveries}
          id="deliveries"
          labelledBy="deliveries-title"
        />
      )}
    </section>
  );
}

interface DeliveriesProps {
  readonly jobId: string;
  readonly deliveries: readonly Delivery[];
  /** Told of the list as it is after a replay. */
  readonly onDeliveries: (deliveries: readonly Delivery[]) => void;
  readonly id?: string;
  /** Id of the heading that the list belongs to. */
  readonly labelledBy?: string;
}

/** What was sent of one job. */
function Deliveries({ jobId, deliveries, onDeliveries, id, labelledBy }: DeliveriesProps) {
  const [fault, setFault] = useState('');
  return (
    <>
      <Fault text={fault} id={id === undefined ? undefined : `${id}-error`} />
      <ul class="deliveries" id={id} aria-labelledby={labelledBy}>
        {deliveries.length === 0 ? (
          <li class="soft">Nothing sent yet. The webhook is called when the job finishes.</li>
        ) : (
          deliveries.map((delivery) => (
            <DeliveryItem
              key={delivery.deliveryId}
              jobId={jobId}
              delivery={delivery}
              onDeliveries={onDeliveries}
              onFault={setFault}
            />
          ))
        )}
      </ul>
    </>
  );
}

interface ItemProps {
  readonly jobId: string;
  readonly delivery: Delivery;
  readonly onDeliveries: (deliveries: readonly Delivery[]) => void;
  readonly onFault: (text: string) => void;
}

function DeliveryItem({ jobId, delivery, onDeliveries, onFault }: ItemProps) {
  const { deliveryId, status, nextAttemptAt, attempts } = delivery;
  const webhook = delivery.kind === 'webhook' ? delivery : undefined;
  const destination = delivery.kind === 'destination' ? delivery.name : undefined;
  const what = webhook?.event ?? delivery.kind;
  const { busy, fault, run } = useWork();
  useEffect(() => onFault(fault), [fault]);

  async function replay(): Promise<void> {
    const answer = await (destination === undefined
      ? api().replayDelivery(jobId, deliveryId)
      : api().replayDestination(jobId, destination));
    announce(`Resending ${what}`);
    onDeliveries(answer.deliveries);
  }

  return (
    <li class="delivery" data-status={status} data-delivery={deliveryId}>
      <div class="delivery-head">
        <code>{what}</code>
        <span class={`status status-${deliverySigns[status]}`}>{deliveryWords[status]}</span>
        {webhook === undefined && destination === undefined ? null : (
          <Button
            class="small"
            icon="retry"
            aria-label={`Replay ${what}`}
            busy={busy}
            onClick={() => void run(replay)}
          >
            Replay
          </Button>
        )}
      </div>
      <ol class="attempts" aria-label={`Attempts of ${what}`}>
        {attempts.map((attempt) => (
          <AttemptItem key={attempt.at} attempt={attempt} />
        ))}
      </ol>
      {webhook === undefined ? null : <DeliveryBody delivery={webhook} />}
      {nextAttemptAt === null ? null : <p class="hint">Next attempt at {shortTime(nextAttemptAt)}</p>}
      {webhook?.endpoint === undefined || status !== 'pending' ? null : (
        <p class="hint">
          This endpoint has been failing since {shortTime(webhook.endpoint.failedSince)}. It gets one attempt
          at a time.
        </p>
      )}
    </li>
  );
}

function AttemptItem({ attempt }: { readonly attempt: Delivery['attempts'][number] }) {
  const { at, httpStatus, latencyMs, error } = attempt;
  const isGood = httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
  return (
    <li class={isGood ? 'good' : 'bad'}>
      <strong>{httpStatus === null ? 'No response' : String(httpStatus)}</strong>
      <span class="soft">
        {[shortTime(at), `${latencyMs} ms`, error].filter((part) => part !== null).join(' · ')}
      </span>
    </li>
  );
}
