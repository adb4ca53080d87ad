/** What the engine is told of a sort of webhook: those of jobs, those of instances, the status relay. */

import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Tracing } from 'soundpost-kit/observe/tracing/tracing';
import { z } from 'zod';
import type { Claim } from '../jobs/try-places.ts';
import type { Post, Webhook } from './post-webhook.ts';
import type { Schedule } from './schedule.ts';

/** What the job of every delivery carries; each kind adds its own. */
export const DeliveryData = z.looseObject({
  /** The webhook-id: the same for every try and every replay. */
  deliveryId: z.string(),
  /** When the event happened, ms since the epoch. */
  eventTimeMs: z.number(),
});
export type DeliveryData = z.infer<typeof DeliveryData>;

/** Deliveries of one lane are tried one at a time, in their order. */
export interface Lane {
  readonly name: string;
  /** Compared as text. */
  readonly order: string;
  /** Until when the others wait: for the first try, or until it is delivered or has failed. */
  readonly until: 'first try' | 'end';
}

type Turn = Omit<Claim, 'jobId'>;

export interface DeliveryKind {
  /** Asked before each try, so that what was set meanwhile holds. A text says why nothing is sent any more. */
  readonly prepare: (data: DeliveryData) => Promise<Omit<Webhook, 'id'> | string>;
  readonly post: Post;
  readonly schedule: Schedule;
  /** Answers besides 2xx after which no try follows. */
  readonly finalStatuses: ReadonlySet<number>;
  /** Undefined where no delivery waits for another. */
  readonly laneOf?: (data: DeliveryData) => Lane;
  /** Whose try it is and to which host, so that keys and hosts take turns; undefined where it takes its place at once. */
  readonly turnOf?: (data: DeliveryData) => Promise<Turn | undefined>;
  /** How long the log of tries is kept; undefined keeps none. */
  readonly logSeconds?: number;
  /** What the log names it by. */
  readonly about: (data: DeliveryData) => object;
  /** Undefined where tries are not counted. */
  readonly observed?: {
    readonly as: Parameters<Observer['webhookTried']>[0];
    readonly observer: Observer;
  };
  /** Undefined where receivers get nothing of a trace. */
  readonly tracing?: Tracing;
}
