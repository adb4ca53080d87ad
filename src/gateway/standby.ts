/** What a process of the gateway answers while another one serves: that it lives, is not ready, and took nothing. */
import type { Express } from 'express';
import type { Logger } from 'soundpost-base/logger';
import { standby } from 'soundpost-chat/lease/lease';
import { application } from 'soundpost-kit/http/routes';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { LinkWatch } from 'soundpost-kit/redis/link-watch';
import type { StorageState } from 'soundpost-kit/storage/storage';
import type { SandboxLevel } from 'soundpost-media/sandbox';
import { gatewayFromElsewhere } from './middleware/cross-origin.ts';
import { errorAnswer } from './middleware/error-answer.ts';
import { requestLog } from './middleware/request-log.ts';
import { live, ready } from './routes/health.ts';

interface StandbyOptions {
  readonly redis: Redis;
  readonly link: LinkWatch;
  readonly storageState: () => StorageState;
  readonly sandbox: SandboxLevel;
  readonly logger: Logger;
  /** As those of the gateway that serves. */
  readonly corsOrigins: readonly string[];
}

export function createStandbyApp(options: StandbyOptions): Express {
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
