/** Which path leads where. The order matters: what needs no key, then the key, then everything else. */
import express, { type Express, type RequestHandler } from 'express';
import helmet from 'helmet';
import { inboxPage } from './inbox/inbox-page.ts';
import { inboxRoutes } from './inbox/inbox-routes.ts';
import type { Access } from './middleware/access.ts';
import { auditing, noteChange } from './middleware/audit.ts';
import { errorAnswer, notFound, otherMethods } from './middleware/error-answer.ts';
import { requestLog } from './middleware/request-log.ts';
import type { Route } from './route.ts';
import { docsRoutes } from './routes/docs.ts';
import { live, ready } from './routes/health.ts';
import { openInvitation } from './routes/invitations.ts';
import { media } from './routes/media.ts';
import { keyedRoutes } from './routes/routes.ts';
import type { GatewayServices } from './services.ts';

export function createApp(services: GatewayServices): Express {
  const { access, audit, forwarding, redis, storage, sandbox, logger, trustProxy, publicUrl } = services;
  const routes = keyedRoutes(services);
  const app = express();
  app.set('query parser', 'simple');
  app.set('etag', false);
  app.set('trust proxy', trustProxy);
  app.use(securityHeaders());
  app.use(forwarding.receive);
  app.use(requestLog(logger, forwarding.idOf));
  app.use(auditing(audit));
  app.use(forwarding.refuseForged);

  app.get('/health/live', live);
  app.get('/health/ready', ready(redis, storage, sandbox));
  app.route('/media/:file').get(media(storage)).all(otherMethods('GET, HEAD'));
  app.use(docsRoutes(routes, publicUrl));
  app.route('/i/:code').get(openInvitation).all(otherMethods('GET, HEAD'));
  app.use('/inbox/api', inboxRoutes(services));
  app.use('/inbox', inboxPage());

  app.use(access.requireKey);
  for (const [path, samePath] of Map.groupBy(routes, (route) => route.path)) {
    const mounted = app.route(path);
    for (const route of samePath) {
      mounted[route.method](
        ...admission(route, access),
        ...atOwner(route, services),
        async (request, response) => {
          if (route.changes) {
            noteChange(request);
          }
          await route.handle(request, response, () => access.instanceOf(request));
        },
      );
    }
    mounted.all(otherMethods(samePath.map(({ method }) => method.toUpperCase()).join(', ')));
  }
  app.use(notFound);
  app.use(errorAnswer({ logger, redisReady: () => redis.status === 'ready' }));
  return app;
}

function admission({ access: by, path }: Route, access: Access): RequestHandler[] {
  return [
    ...(by === 'gateway' ? [access.requireGatewayKey] : []),
    ...(path.endsWith('/:instance') ? [access.requireInstance] : []),
  ];
}

function atOwner({ path, anywhere }: Route, { access, forwarding }: GatewayServices): RequestHandler[] {
  const needsSession = path.endsWith('/:instance') && anywhere !== true;
  return needsSession ? [forwarding.toOwner((request) => access.instanceOf(request))] : [];
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
