/** What the gateway makes of an `Idempotency-Key`: after a failure it stays bound to its body, and the next repetition sends again. */
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { IdempotencyPolicy } from 'soundpost-kit/http/idempotency';

export const idempotencyPolicy: IdempotencyPolicy = {
  isUndone: () => false,
  refusal: (reason, retryAfterSeconds) =>
    reason === 'mismatch'
      ? new GatewayError('idempotency_mismatch', 'Idempotency-Key: was used before with another body')
      : new GatewayError(
          'idempotency_in_progress',
          'Idempotency-Key: the first request with it is still running',
          { retryAfterSeconds },
        ),
};
