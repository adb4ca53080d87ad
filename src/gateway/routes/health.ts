/** `GET /health/live` and `GET /health/ready`, without a key (decisions E "Health"). */
import type { RequestHandler } from 'express';
import { STANDBY_RETRY_SECONDS } from 'soundpost-chat/lease/lease';
import type { GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import { sayAway } from 'soundpost-kit/observe/away';
import type { ProbeState, Probes } from 'soundpost-kit/observe/probes';
import { healthOfRedis, type Redis, type redisStates } from 'soundpost-kit/redis/connection';
import type { SandboxLevel } from 'soundpost-media/sandbox';

export function live(probes: Probes): RequestHandler {
  return (_request, response) => {
    const isCutOff = probes.isFailing('gatewayLink');
    response
      .status(isCutOff ? 503 : 200)
      .set('Cache-Control', 'no-store')
      .json({ status: isCutOff ? 'unavailable' : 'ok' });
  };
}

interface Readiness {
  readonly redis: Redis;
  readonly probes: Probes;
  readonly sandbox: SandboxLevel;
  /** Whether this is the gateway's serving process. */
  readonly serves: boolean;
}

const redisWords: Readonly<Record<(typeof redisStates)[number], string>> = {
  up: 'ok',
  'refuses-writes': 'refuses-writes',
  down: 'unreachable',
};
const storageWords: Readonly<Record<ProbeState<'storage'>, string>> = {
  up: 'ok',
  slow: 'slow',
  down: 'unreachable',
};

export function ready({ redis, probes, sandbox, serves }: Readiness): RequestHandler {
  return async (_request, response) => {
    const { state: redisState, reason } = await healthOfRedis(redis);
    const ok = redisState === 'up' && serves;
    const standsBy = redisState === 'up' && !serves;
    if (standsBy) {
      response.setHeader('Retry-After', STANDBY_RETRY_SECONDS);
    }
    response
      .status(ok ? 200 : 503)
      .set('Cache-Control', 'no-store')
      .json({
        status: ok ? 'ok' : 'unavailable',
        ...(standsBy ? { code: 'standby' satisfies GatewayErrorCode } : {}),
        redis: redisWords[redisState],
        ...(reason && { reason, remedy: sayAway(reason) }),
        storage: storageWords[probes.state('storage')],
        sandbox,
      });
  };
}
