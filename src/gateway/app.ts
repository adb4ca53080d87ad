/** Order of the middleware: routes without a key, the key check, all other routes. */

import type { Express, Request, RequestHandler } from 'express';
import helmet from 'helmet';
import type { Instance } from 'soundpost-chat/instances';
import { application, mount, noticeForwarded } from 'soundpost-kit/http/routes';
import { inboxPage, inboxRoutes } from './inbox/inbox-routes.ts';
import { type Access, gatewayFromElsewhere } from './middleware/access.ts';
import { errorAnswer, notFound, otherMethods, refuseMethod } from './middleware/error-answer.ts';
import { auditing, noteChange, requestLog } from './middleware/request-log.ts';
import type { Route } from './route.ts';
import { chatRoutes } from './routes/chats.ts';
import { docsRoutes } from './routes/docs.ts';
import { groupRoutes } from './routes/groups.ts';
import { live, ready } from './routes/health.ts';
import { instanceRoutes } from './routes/instances.ts';
import { media } from './routes/media.ts';
import { networkWebhook } from './routes/network-webhook.ts';
import { processAudio } from './routes/process-audio.ts';
import { publicSignIn, welcome } from './routes/public-sign-in.ts';
import { sendAudioRoutes, sendTextRoutes } from './routes/send.ts';
import { settingsRoutes } from './routes/settings.ts';
import { webhookRoutes } from './routes/webhook.ts';
import type { GatewayServices } from './services.ts';

/** Every route that needs a key, as mounted and as in the OpenAPI document. */
export function keyedRoutes(services: GatewayServices): Route[] {
  return [
    ...sendAudioRoutes(services),
    ...sendTextRoutes(services),
    processAudio(services),
    ...settingsRoutes(services),
    ...chatRoutes(services),
    ...groupRoutes(services),
    ...instanceRoutes(services),
    ...webhookRoutes(services),
    ...(services.answersAsPublic ? [publicSignIn] : []),
  ];
}

export function createApp(services: GatewayServices): Express {
  const { access, probes, storage, sandbox, trustProxy, publicUrl, corsOrigins, answersAsPublic } = services;
  const { redis, audit, logger, observer } = services;
  const routes = keyedRoutes(services);
  const app = application(trustProxy);
  app.use(securityHeaders());
  app.use(requestLog(logger));
  const notice = noticeForwarded(trustProxy, logger);
  app.use((request, _response, next) => {
    notice(request);
    next();
  });
  app.use(auditing(audit));

  app.get('/health/live', live(probes));
  app.get('/health/ready', ready({ redis, probes, sandbox, serves: true }));
  app.route('/media/:file').get(media(storage)).all(otherMethods('GET, HEAD'));
  app.use(docsRoutes(routes, publicUrl));
  const fromElsewhere = gatewayFromElsewhere(corsOrigins);
  // The address that `serve` prints, opened in a browser.
  if (answersAsPublic) app.get('/', fromElsewhere, welcome(publicUrl));
  else app.get('/', (_request, response) => response.redirect('docs'));
  app.route('/i/:code').get(openInvitation).all(otherMethods('GET, HEAD'));
  app.route('/webhooks/:transport/:instance').all(networkWebhook(services)).all(otherMethods('GET, POST'));
  app.use('/inbox/api', inboxRoutes(services));
  app.use('/inbox', inboxPage());

  // Before the key: a browser's preflight has none.
  app.use(fromElsewhere);
  app.use(access.requireKey);
  mount(app, routes, {
    async handle(route, request, response) {
      const instance = await admitted(route, request, access);
      if (route.changes) {
        noteChange(request);
      }
      await route.handle(request, response, instance);
    },
    otherMethod: (onPath, _request, response) =>
      refuseMethod(response, onPath.map(({ method }) => method.toUpperCase()).join(', ')),
  });
  app.use(notFound);
  app.use(errorAnswer({ logger, observer, redisReady: () => redis.status === 'ready' }));
  return app;
}

/** The instance in the path, or else that of the caller's token. */
async function admitted(route: Route, request: Request, access: Access): Promise<Instance | undefined> {
  if (route.access === 'gateway') {
    access.requireGatewayKey(request);
  }
  return route.path.endsWith('/:instance') ? access.requireInstance(request) : access.ownInstance(request);
}

/** Opens an invitation link in the inbox, which asks who joins the group. */
const openInvitation: RequestHandler = (request, response) => {
  // Relative, because a proxy may mount the gateway below a path.
  response.redirect(302, `../inbox?invite=${encodeURIComponent(String(request.params.code))}`);
};

function securityHeaders(): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        connectSrc: ["'self'"],
        // The page decrypts media and plays them as blobs.
        mediaSrc: ['blob:'],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // Only the proxy in front knows whether there is TLS.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
  });
}
