/**
 * Who may do what (decisions B "Keys"): the gateway's own key opens every instance and their management, a token its
 * own instance. A refusal is the same whether the instance exists or not, and comes before anything else is looked at.
 */
import type { Request, RequestHandler } from 'express';
import { type Instance, type Instances, instanceNotFound } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import { countWrongKey } from 'soundpost-kit/redis/rate';
import { isSameSecret } from 'soundpost-kit/signing/signatures';
import { noteKey, noteRefusal } from './request-log.ts';

type Principal = { readonly kind: 'gateway' } | { readonly kind: 'instance'; readonly instance: Instance };

/** No key is longer; a longer header is not worth hashing. */
const LONGEST_KEY = 256;

interface AccessOptions {
  readonly instances: Instances;
  readonly apiKey: string;
  readonly wrongKeys: WrongKeys;
}

export class Access {
  readonly #options: AccessOptions;
  readonly #principals = new WeakMap<Request, Principal>();

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Refuses whoever has no valid key, for whatever path. */
  readonly requireKey: RequestHandler = async (request, _response, next) => {
    const principal = await this.principalOf(request);
    if (principal === undefined) {
      throw unauthorized();
    }
    this.#principals.set(request, principal);
    next();
  };

  /** Refuses everything but the gateway's own key. */
  requireGatewayKey(request: Request): void {
    if (this.#principals.get(request)?.kind !== 'gateway') {
      noteRefusal(request);
      throw unauthorized();
    }
  }

  /** The instance whose token the caller has; undefined for the gateway's own key. */
  ownInstance(request: Request): Instance | undefined {
    const principal = this.#principals.get(request);
    return principal?.kind === 'instance' ? principal.instance : undefined;
  }

  /** Finds the instance of the path for a key that opens it. */
  async requireInstance(request: Request): Promise<Instance> {
    const named = String(request.params.instance);
    const principal = this.#principals.get(request);
    if (principal?.kind === 'instance') {
      const { instance } = principal;
      if (named !== instance.name && named !== instance.id) {
        noteRefusal(request);
        throw unauthorized();
      }
      return instance;
    }
    if (principal === undefined) {
      throw unauthorized();
    }
    const instance = await this.#options.instances.find(named);
    if (instance === undefined) {
      throw instanceNotFound();
    }
    return instance;
  }

  /** Whom the request's key stands for; undefined for none and for a wrong one. Throws rate_limited. */
  async principalOf(request: Request): Promise<Principal | undefined> {
    const { apiKey, instances, wrongKeys } = this.#options;
    const key = request.get('apikey');
    if (key === undefined || key === '') {
      return undefined;
    }
    const principal = await wrongKeys.guard<Principal>(request, async () => {
      if (key.length > LONGEST_KEY) {
        return undefined;
      }
      if (isSameSecret(key, apiKey)) {
        return { kind: 'gateway' };
      }
      // Found by its keyed hash: how long the look-up takes says nothing about any other token.
      const instance = await instances.findByToken(key);
      return instance === undefined ? undefined : { kind: 'instance', instance };
    });
    if (principal !== undefined) {
      noteKey(request, principal.kind === 'gateway' ? 'gateway' : `instance:${principal.instance.id}`);
    }
    return principal;
  }
}

export function unauthorized(): GatewayError {
  return new GatewayError('unauthorized', 'apikey: is missing or does not give access to this');
}

// Wrong keys, tokens, codes and sessions by address: whoever brings too many is refused for a
// while.

export class WrongKeys {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs what looks at a key, and counts when it knows nobody. Throws rate_limited when the address of the request has brought too many
   * such keys; a right one is answered whatever others from its address tried.
   */
  async guard<T>(request: Request, look: () => Promise<T | undefined>): Promise<T | undefined> {
    const found = await look();
    if (found !== undefined) return found;
    const retryAfterSeconds = await countWrongKey(this.#redis, gatewayKey('wrong-keys', request.ip ?? ''));
    if (retryAfterSeconds !== undefined) {
      throw new GatewayError('rate_limited', 'too many wrong keys came from this address', {
        retryAfterSeconds,
      });
    }
    noteRefusal(request);
    return undefined;
  }
}
