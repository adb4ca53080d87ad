/** Whether the process lives, and whether it can work (decisions E, "Health"). */
import type { Route } from '../route.ts';

export const healthRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/health/live',
    access: { by: 'public' },
    async handle({ response }) {
      response.json({ status: 'ok' });
    },
  },
  {
    method: 'get',
    path: '/health/ready',
    access: { by: 'public' },
    async handle({ response, services }) {
      const [redis, storage] = await Promise.all([
        services.redis.ping().then(isUp, isDown),
        services.storage.ping().then(isUp, isDown),
      ]);
      const ready = redis === 'up' && storage === 'up';
      response
        .status(ready ? 200 : 503)
        .json({ status: ready ? 'ok' : 'unavailable', checks: { redis, storage } });
    },
  },
];

const isUp = (): 'up' => 'up';
const isDown = (): 'down' => 'down';
