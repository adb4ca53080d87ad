/** What makes a process of the gateway one of several: its lease, what it has, and how requests come to it. */
import type { AddressInfo } from 'node:net';
import type { Logger } from '../../logger.ts';
import type { Redis } from '../../queue/redis.ts';
import type { OnDuty } from '../stream-consumer.ts';
import { Forwarding } from './forwarding.ts';
import type { HoldListener } from './holds.ts';
import { homeOfThisProcess } from './home.ts';
import { ownUrl } from './own-url.ts';
import { Ownership } from './ownership.ts';
import { type LeaseTiming, Placement } from './placement.ts';
import { PublishedStates } from './published-states.ts';
import { Tickets } from './ticket.ts';

/** What one replica at a time does, so that it is done in order. */
export const duties = {
  loopbackRelay: 'loopback-relay',
  eventsPost: 'events-url',
  webhooks: 'webhooks',
} as const;

export interface ReplicaSetting {
  /** Where other replicas reach this one. Default: the address that it listens on. */
  readonly url?: string | undefined;
  /** Key of what replicas say to each other; the same in every one. */
  readonly key: Buffer;
  readonly timing?: Partial<LeaseTiming> | undefined;
  /** Default: this process' own, by which those of the same machine see that it is no more. */
  readonly home?: string | undefined;
}

interface ReplicaOptions extends ReplicaSetting {
  readonly redis: Redis;
  /** Aborted when the gateway stops. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
}

/** A little longer than the lease of a replica that has died. */
const PATIENCE_MS = 12_000;

export class Replicas {
  readonly placement: Placement;
  readonly states: PublishedStates;
  readonly forwarding: Forwarding;
  readonly #url: string | undefined;

  private constructor({ redis, url, key, timing, closing, logger }: ReplicaOptions, home: string) {
    const names = Object.values(duties);
    const ownership = new Ownership(redis, names);
    this.placement = new Placement({ ownership, duties: names, home, timing, logger });
    this.states = new PublishedStates(redis, logger);
    this.forwarding = new Forwarding({
      placement: this.placement,
      tickets: new Tickets(key),
      patienceMs: PATIENCE_MS,
      closing,
    });
    this.#url = url;
  }

  static async open(options: ReplicaOptions): Promise<Replicas> {
    return new Replicas(options, options.home ?? (await homeOfThisProcess()));
  }

  /** Resolves when this replica has its share. */
  async join(address: AddressInfo, listener: HoldListener): Promise<void> {
    await this.placement.start(this.#url ?? ownUrl(address), listener);
  }

  onDuty(duty: keyof typeof duties): OnDuty {
    return (signal) => this.placement.onDuty(duties[duty], signal);
  }
}
