/** What a process of the gateway answers while another one serves: that it lives, is not ready, and took nothing. */
import type { Express } from 'express';
import { standby } from 'soundpost-chat/lease/lease';
import { application } from 'soundpost-kit/http/routes';
import { gatewayFromElsewhere } from './middleware/cross-origin.ts';
import { errorAnswer } from './middleware/error-answer.ts';
import { requestLog } from './middleware/request-log.ts';
import { live, ready } from './routes/health.ts';
import type { GatewayServices } from './services.ts';

export function createStandbyApp(
  options: Pick<GatewayServices, 'redis' | 'link' | 'storageState' | 'sandbox' | 'logger' | 'corsOrigins'>,
): Express {
  const { redis, link, storageState, sandbox, logger, corsOrigins } = options;
  const app = application(0);
  app.use(requestLog(logger));
  app.get('/health/live', live(link));
  app.get('/health/ready', ready({ redis, storageState, sandbox, serves: false }));
  app.use(gatewayFromElsewhere(corsOrigins));
  app.use(() => {
    // Without Redis nobody serves, and that is what callers are told.
    throw redis.status === 'ready' ? standby() : new Error('Redis is away');
  });
  app.use(errorAnswer({ logger, redisReady: () => redis.status === 'ready' }));
  return app;
}
