/**
 * Brings each request to the replica that has its instance. One that came from another replica goes no further: it is done here
 * or refused.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../contract/gateway-errors.ts';
import type { Instance } from '../instances.ts';
import { unauthorized } from '../middleware/access.ts';
import { notePassedOn, noteRefusal } from '../middleware/audit.ts';
import { requestId } from '../middleware/request-log.ts';
import { moved } from './hold.ts';
import { passOn } from './passing-on.ts';
import type { Placement } from './placement.ts';
import { TICKET_HEADER, type Ticket, type Tickets } from './ticket.ts';

export interface ForwardingOptions {
  readonly placement: Placement;
  readonly tickets: Tickets;
  /** How long a request waits for an instance that nobody has, or whose replica cannot be reached, ms. */
  readonly patienceMs: number;
  /** Aborted when the gateway stops: nobody waits any more. */
  readonly closing: AbortSignal;
}

const LOOK_AGAIN_MS = 250;

export class Forwarding {
  readonly #options: ForwardingOptions;
  readonly #tickets = new WeakMap<Request, Ticket | 'forged'>();

  constructor(options: ForwardingOptions) {
    this.#options = options;
  }

  /** Reads what another replica says of the request. Comes first, since the log and the counting of wrong keys build on it. */
  readonly receive: RequestHandler = (request, _response, next) => {
    const value = request.get(TICKET_HEADER);
    if (value !== undefined) {
      const ticket = this.#options.tickets.read(value, { method: request.method, path: request.originalUrl });
      this.#tickets.set(request, ticket ?? 'forged');
      if (ticket !== undefined) {
        Object.defineProperty(request, 'ip', { value: ticket.address });
      }
    }
    next();
  };

  /** The id that the first replica gave the request. */
  readonly idOf = (request: Request): string | undefined => {
    const ticket = this.#tickets.get(request);
    return ticket === 'forged' ? undefined : ticket?.requestId;
  };

  /** Refuses what only pretends to come from a replica. */
  readonly refuseForged: RequestHandler = (request, _response, next) => {
    if (this.#tickets.get(request) === 'forged') {
      noteRefusal(request);
      throw unauthorized();
    }
    next();
  };

  /** Goes on only where the instance is. Throws service_unavailable when it is nowhere for too long, timeout when nobody knows. */
  toOwner(instanceOf: (request: Request) => Instance | Promise<Instance>): RequestHandler {
    return async (request, response, next) => {
      const { placement, patienceMs, closing } = this.#options;
      const { id } = await instanceOf(request);
      if (placement.holdOf(id) !== undefined || (await this.#isHere(id, request))) {
        return next();
      }
      const endsAt = performance.now() + patienceMs;
      for (;;) {
        const where = await placement.locate(id);
        if (where === 'here') {
          return next();
        }
        if (where !== undefined && (await this.#passOn(request, response, id, where))) {
          return;
        }
        await wait(LOOK_AGAIN_MS, undefined, { signal: closing }).catch(() => undefined);
        if (closing.aborted || response.destroyed || performance.now() > endsAt) {
          throw moved();
        }
      }
    };
  }

  async #isHere(id: string, request: Request): Promise<boolean> {
    if (!this.#tickets.has(request)) {
      return false;
    }
    if ((await this.#options.placement.locate(id)) !== 'here') {
      throw moved();
    }
    return true;
  }

  /** Answers false when the replica was not reached. */
  async #passOn(
    request: Request,
    response: Response,
    id: string,
    { holder, place }: { readonly holder: string; readonly place: { readonly url: string } },
  ): Promise<boolean> {
    const { placement, tickets } = this.#options;
    const { method, originalUrl: path } = request;
    const ticket = { address: request.ip ?? '', requestId: requestId(request) };
    notePassedOn(request, true);
    const outcome = await passOn(request, response, {
      url: place.url,
      headers: { [TICKET_HEADER]: tickets.issue(ticket, { method, path }) },
      isRight: () => placement.isHeldBy(id, holder),
    });
    notePassedOn(request, outcome === 'answered');
    if (outcome === 'unreachable') {
      return false;
    }
    if (outcome === 'lost') {
      throw method === 'GET' ? moved() : lost();
    }
    return true;
  }
}

function lost(): GatewayError {
  return new GatewayError(
    'timeout',
    'the process of the gateway that has the instance did not answer; whether it did what was asked is not known',
    { retryAfterSeconds: 1 },
  );
}
