/** The key has reached one of its limits: answered 429, counted and logged in errors.ts. */

import { ServiceError } from 'soundpost-contract/errors';
import type { KeyLimit } from 'soundpost-kit/observe/metrics/observer';
import type { RateState } from 'soundpost-kit/redis/rate';

interface OwnRate {
  /** Its name in the RateLimit fields. */
  readonly policy: string;
  readonly state: RateState;
  readonly windowSeconds: number;
}

export class LimitReached extends ServiceError {
  readonly limit: KeyLimit;
  /** For the answer's RateLimit fields, unless they already report this limit. */
  readonly rate: OwnRate | undefined;

  constructor(limit: KeyLimit, message: string, retryAfterSeconds: number, rate?: OwnRate) {
    super('RATE_LIMITED', message, { retryAfterSeconds });
    this.limit = limit;
    this.rate = rate;
  }
}
