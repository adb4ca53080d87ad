/** Which path leads where. The order matters: what needs no key, then the key, then everything else. */
import express, { type Express } from 'express';
import helmet from 'helmet';
import type { Logger } from '../logger.ts';
import type { Redis } from '../queue/redis.ts';
import type { Storage } from '../storage/storage.ts';
import { inboxPage } from './inbox/inbox-page.ts';
import { type InboxServices, inboxRoutes } from './inbox/inbox-routes.ts';
import { errorAnswer, notFound, otherMethods } from './middleware/error-answer.ts';
import { requestLog } from './middleware/request-log.ts';
import { live, ready } from './routes/health.ts';
import { type InstanceServices, instanceRoutes } from './routes/instances.ts';
import { media } from './routes/media.ts';
import { operationRoutes } from './routes/operations.ts';
import { type SendAudioServices, sendAudio } from './routes/send-audio.ts';

export interface AppServices extends SendAudioServices, InstanceServices, InboxServices {
  readonly redis: Redis;
  readonly storage: Storage;
  readonly brands: readonly string[];
  readonly logger: Logger;
}

export function createApp(services: AppServices): Express {
  const { access, redis, storage, brands, logger } = services;
  const app = express();
  app.set('query parser', 'simple');
  app.set('etag', false);
  app.use(securityHeaders());
  app.use(requestLog(logger));

  app.get('/health/live', live);
  app.get('/health/ready', ready(redis, storage));
  app.route('/media/:file').get(media(storage)).all(otherMethods('GET, HEAD'));
  app.use('/inbox/api', inboxRoutes(services));
  app.use('/inbox', inboxPage());

  app.use(access.requireKey);
  for (const brand of brands) {
    app.route(`/message/send${brand}Audio/:instance`).post(sendAudio(services)).all(otherMethods('POST'));
  }
  app.use(operationRoutes(access));
  app.use(instanceRoutes(services));
  app.use(notFound);
  app.use(errorAnswer({ logger, redisReady: () => redis.status === 'ready' }));
  return app;
}

function securityHeaders(): express.RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        connectSrc: ["'self'"],
        // The page decrypts the media and hands the player a blob.
        mediaSrc: ['blob:'],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // Whether there is TLS in front is the proxy's to say.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
  });
}
