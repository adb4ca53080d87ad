/**
 * Access (decisions B "Keys"): the gateway's own key opens every instance and their management, a
 * token its own instance. A refusal comes first, and does not show whether the instance exists.
 */

import type { Request, RequestHandler } from 'express';
import { type Instance, type Instances, instanceNotFound } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { crossOrigin } from 'soundpost-kit/http/cross-origin';
import type { Redis } from 'soundpost-kit/redis/connection';
import { countWrongKey } from 'soundpost-kit/redis/rate';
import { isSameSecret } from 'soundpost-kit/signing/signatures';
import { noteKey, noteRefusal } from './request-log.ts';

type Principal = { readonly kind: 'gateway' } | { readonly kind: 'instance'; readonly instance: Instance };

/** No key is longer, so a longer header is not hashed. */
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

  /** Rejects requests without a valid key, on any path. */
  readonly requireKey: RequestHandler = async (request, _response, next) => {
    const principal = await this.principalOf(request);
    if (principal === undefined) {
      throw unauthorized();
    }
    this.#principals.set(request, principal);
    next();
  };

  /** Rejects everything but the gateway's own key. */
  requireGatewayKey(request: Request): void {
    if (this.#principals.get(request)?.kind !== 'gateway') {
      noteRefusal(request);
      throw unauthorized();
    }
  }

  /** The instance of the caller's token; undefined for the gateway's own key. */
  ownInstance(request: Request): Instance | undefined {
    const principal = this.#principals.get(request);
    return principal?.kind === 'instance' ? principal.instance : undefined;
  }

  /** The instance in the path, if the key opens it. */
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

  /** The owner of the request's key; undefined without a valid key. Throws rate_limited. */
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
      // Looked up by keyed hash, so timing reveals nothing about other tokens.
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
  return new GatewayError('unauthorized', 'apikey: is missing or has no access to this');
}

// Wrong keys, tokens, codes and sessions by address: after too many, more of them are rate_limited.

export class WrongKeys {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs a lookup of a key, and counts a miss. Throws rate_limited after too many misses from the
   * address; a valid key is accepted whatever others there tried.
   */
  async guard<T>(request: Request, look: () => Promise<T | undefined>): Promise<T | undefined> {
    const found = await look();
    if (found !== undefined) return found;
    const retryAfterSeconds = await countWrongKey(this.#redis, gatewayKey('wrong-keys', request.ip ?? ''));
    if (retryAfterSeconds !== undefined) {
      throw new GatewayError('rate_limited', 'too many wrong keys from this address', {
        retryAfterSeconds,
      });
    }
    noteRefusal(request);
    return undefined;
  }
}

// CORS for the console and for CORS_ORIGINS. Their pages need the key like anyone else.

/** Other origins are answered without CORS headers. */
export function gatewayFromElsewhere(origins: readonly string[]): RequestHandler {
  const answer = crossOrigin({
    origins,
    methods: ['GET', 'POST', 'DELETE'],
    exposedHeaders: ['Retry-After', 'X-Request-Id'],
  });
  const known = new Set(origins);
  return (request, response, next) => {
    const { origin } = request.headers;
    if (known.has('*') || (origin !== undefined && known.has(origin))) return answer(request, response, next);
    response.vary('Origin');
    next();
  };
}
