/** Whether the process lives and can work (decisions E, "Health"). */

import { awayReasons, sayAway } from 'soundpost-kit/observe/away';
import { probeTable } from 'soundpost-kit/observe/probes';
import { healthOfRedis, redisStates } from 'soundpost-kit/redis/connection';
import { sandboxLevels } from 'soundpost-media/sandbox';
import { z } from 'zod';
import type { Route } from '../route.ts';

const Liveness = z.object({ status: z.enum(['ok', 'unavailable']) });

const Redis = z.enum(redisStates).meta({
  description: 'refuses-writes: Redis answers but rejects writes (full, cannot persist, or no master)',
});
const Storage = z.enum(['up', 'slow', 'down']).meta({
  description:
    'slow: answers after more than a second. down: uploads, forms with a file and downloads get 503; everything else works, and jobs wait',
});
const Readiness = z.object({
  status: z.enum(['ok', 'unavailable']),
  checks: z.object({ redis: Redis, storage: Storage }),
  reason: z
    .enum(awayReasons)
    .optional()
    .meta({ description: 'With 503: why, as in the metric soundpost_away_total' }),
  remedy: z.string().optional().meta({ description: 'With 503: what to do' }),
  sandbox: z
    .enum(sandboxLevels)
    .optional()
    .meta({ description: 'How ffmpeg is sandboxed, if this process runs it' }),
  disk: z.enum(['ok', 'low']).optional().meta({
    description: 'low: less than DISK_RESERVE_BYTES is free. Files are rejected, and jobs wait for space',
  }),
  marks: z.enum(probeTable.marks.states).meta({
    description: 'apart: Redis and the results do not belong together, so no jobs are run',
  }),
});

export const healthRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/health/live',
    access: { by: 'public' },
    docs: {
      operationId: 'getLiveness',
      summary: 'Check that the process is alive',
      tag: 'Service',
      answers: {
        200: { description: 'It is alive', content: { 'application/json': Liveness } },
        503: {
          description: 'Only this process has lost Redis; restart it',
          content: { 'application/json': Liveness },
        },
      },
      errors: [],
    },
    async handle({ response, services }) {
      const isCutOff = services.probes.isFailing('link');
      response.status(isCutOff ? 503 : 200).json({ status: isCutOff ? 'unavailable' : 'ok' });
    },
  },
  {
    method: 'get',
    path: '/health/ready',
    access: { by: 'public' },
    docs: {
      operationId: 'getReadiness',
      summary: 'Check that the service is ready',
      tag: 'Service',
      answers: {
        200: { description: 'It is ready', content: { 'application/json': Readiness } },
        503: {
          description: 'Redis does not answer, or refuses writes',
          content: { 'application/json': Readiness },
        },
      },
      errors: [],
    },
    async handle({ response, services }) {
      const [redis, disk] = await Promise.all([
        healthOfRedis(services.redis),
        services.disk.isLow().then(asState, () => undefined),
      ]);
      const { state, reason } = redis;
      const ready = state === 'up';
      response.status(ready ? 200 : 503).json({
        status: ready ? 'ok' : 'unavailable',
        checks: { redis: state, storage: services.probes.state('storage') },
        ...(reason && { reason, remedy: sayAway(reason) }),
        sandbox: services.settings.sandbox,
        disk,
        marks: services.probes.state('marks'),
      });
    },
  },
];

const asState = (isLow: boolean): 'ok' | 'low' => (isLow ? 'low' : 'ok');
