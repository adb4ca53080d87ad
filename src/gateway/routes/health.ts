/** `GET /health/live` and `GET /health/ready`, without a key (decisions E "Health"). */
import type { RequestHandler } from 'express';
import type { GatewayErrorCode } from '../../contract/gateway-errors.ts';
import type { SandboxLevel } from '../../media/sandbox.ts';
import { pingRedis, type Redis } from '../../redis/connection.ts';
import type { StorageState } from '../../storage/storage.ts';
import { STANDBY_RETRY_SECONDS } from '../lease/lease.ts';

/** An answer that takes longer is no answer. */
const TIMEOUT_MS = 2000;

export const live: RequestHandler = (_request, response) => {
  response.set('Cache-Control', 'no-store').json({ status: 'ok' });
};

interface Readiness {
  readonly redis: Redis;
  readonly storageState: () => StorageState;
  readonly sandbox: SandboxLevel;
  /** Whether this process is the one of the gateway that serves. */
  readonly serves: boolean;
}

const storageWords: Readonly<Record<StorageState, string>> = { up: 'ok', slow: 'slow', down: 'unreachable' };

export function ready({ redis, storageState, sandbox, serves }: Readiness): RequestHandler {
  return async (_request, response) => {
    const redisAnswers = await answers(pingRedis(redis));
    const ok = redisAnswers && serves;
    const standsBy = redisAnswers && !serves;
    if (standsBy) {
      response.setHeader('Retry-After', STANDBY_RETRY_SECONDS);
    }
    response
      .status(ok ? 200 : 503)
      .set('Cache-Control', 'no-store')
      .json({
        status: ok ? 'ok' : 'unavailable',
        ...(standsBy ? { code: 'standby' satisfies GatewayErrorCode } : {}),
        redis: redisAnswers ? 'ok' : 'unreachable',
        storage: storageWords[storageState()],
        sandbox,
      });
  };
}

async function answers(check: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), TIMEOUT_MS);
  const inTime = check.then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([inTime, late]);
  } finally {
    clearTimeout(timer);
  }
}
