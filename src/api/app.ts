/** The Express application: the routes, and the middleware around every request. */

import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import type { ErrorRequestHandler, Express, NextFunction, Request, RequestHandler, Response } from 'express';
import helmet from 'helmet';
import type { Logger } from 'soundpost-base/logger';
import { IncomingMessage, ServerResponse } from 'soundpost-base/node-http';
import { ServiceError } from 'soundpost-contract/errors';
import { JobId } from 'soundpost-contract/ids';
import { crossOrigin } from 'soundpost-kit/http/cross-origin';
import { application, type Mounting, mount, newRouter, noticeForwarded } from 'soundpost-kit/http/routes';
import { staticFiles } from 'soundpost-kit/http/static-files';
import { referenceFiles } from '../process/config.ts';
import { consolePage } from './console-page.ts';
import { admit } from './middleware/authentication.ts';
import { errorHandler } from './middleware/errors.ts';
import type { ApiServices, ApiSettings, Route, RouteContext } from './route.ts';
import { batchRoutes } from './routes/batch.ts';
import { bulkRoutes } from './routes/bulk.ts';
import { deliveryRoutes } from './routes/deliveries.ts';
import { destinationRoutes } from './routes/destinations.ts';
import { docsRoutes } from './routes/docs.ts';
import { downloadRoutes } from './routes/download.ts';
import { eventRoutes } from './routes/events.ts';
import { extractRoutes } from './routes/extract.ts';
import { healthRoutes } from './routes/health.ts';
import { hookRoutes } from './routes/hooks.ts';
import { jobRoutes } from './routes/jobs.ts';
import { keyRoutes } from './routes/keys.ts';
import { sessionRoutes } from './routes/session.ts';
import { transcriptionRoutes } from './routes/transcriptions.ts';
import { uploadRoutes } from './routes/uploads.ts';
import { usageRoutes } from './routes/usage.ts';
import { voiceMessageRoutes } from './routes/voice-message.ts';
import { overrideMethod } from './uploads/tus-protocol.ts';

/** Every route, in the order of the documentation. */
export const routes: readonly Route[] = [
  ...extractRoutes,
  ...batchRoutes,
  ...transcriptionRoutes,
  ...uploadRoutes,
  // Its path is one of a job's, too.
  ...bulkRoutes,
  ...jobRoutes,
  ...eventRoutes,
  ...voiceMessageRoutes,
  ...downloadRoutes,
  ...deliveryRoutes,
  ...destinationRoutes,
  ...keyRoutes,
  ...sessionRoutes,
  ...usageRoutes,
  ...hookRoutes,
  ...healthRoutes,
  ...docsRoutes(() => routes),
];

/** Webhooks carry paths of this form (audio-extraction.md "Download audio"). */
const PREFIX = /^\/audio-extract(?=\/)/i;

export function createApp(services: ApiServices): Express {
  const { settings, logger } = services;
  const app = application(settings.trustProxy);
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use(beginning(settings, logger));
  const versioned = routes.filter(({ path }) => path.startsWith('/v1/'));
  // On the application itself: a nested router costs each request some microseconds.
  mount(app, routes, mounting(services));
  app.use(PREFIX, mount(newRouter({ isExact: true }), versioned, mounting(services)));
  app.use('/docs', staticFiles(referenceFiles));
  if (settings.console !== undefined) {
    app.use(consolePage(settings.console));
  } else {
    app.get('/', (_request, response) => response.redirect('docs'));
  }
  app.use(answerUnknown(services));
  app.use(answerUndecodable(services));
  app.use(errorHandler(services));
  return app;
}

/** One layer for everything: each separate layer costs some microseconds. */
function beginning(settings: ApiSettings, logger: Logger): RequestHandler {
  const headers = fixedHeaders(settings);
  const answerAcross = apiFromElsewhere(settings.corsOrigins);
  const notice = noticeForwarded(settings.trustProxy, logger);
  return (request, response, next) => {
    response.setHeaders(headers);
    response.locals = { requestId: randomUUID() };
    response.setHeader('X-Request-Id', response.locals.requestId);
    overrideMethod(request);
    notice(request);
    const isFromElsewhere = request.headers.origin !== undefined || request.method === 'OPTIONS';
    return isFromElsewhere ? answerAcross(request, response, next) : next();
  };
}

function mounting(services: ApiServices): Mounting<Route> {
  return {
    async handle(route, request, response) {
      response.locals.sendError = route.errors?.send;
      const { access, reads } = route;
      const isSigned = access.by === 'signature' && request.query.signature !== undefined;
      if (access.by === 'public' || isSigned) {
        return route.handle({ request, response, services, key: undefined });
      }
      const named = reads === 'job' ? JobId.safeParse(request.params.jobId).data : undefined;
      const { key, record, session } = await admit(request, response, services, access, named);
      const context: RouteContext = { request, response, services, key, session };
      return route.handle(named === undefined ? context : { ...context, record });
    },
    async otherMethod(onPath, request, response) {
      response.locals.sendError = onPath[0]?.errors?.send;
      const allowed = methodsOf(onPath).join(', ');
      response.set('Allow', allowed);
      if (request.method === 'OPTIONS') {
        for (const { discovery } of onPath) {
          response.set(discovery?.(services.settings) ?? {});
        }
        response.status(204).end();
        return;
      }
      await admit(request, response, services);
      throw new ServiceError('METHOD_NOT_ALLOWED', `use one of ${allowed}`);
    },
  };
}

function methodsOf(onPath: readonly Route[]): string[] {
  const methods = onPath.map((route) => route.method.toUpperCase());
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'];
}

/** A caller without a valid key must not learn which paths exist. */
function answerUnknown(services: ApiServices) {
  return async (request: Request, response: Response, _next: NextFunction): Promise<void> => {
    await admit(request, response, services);
    throw new ServiceError('NOT_FOUND', 'nothing was found at this path');
  };
}

/** A path that cannot be decoded gets the same answer as any unknown path. */
function answerUndecodable(services: ApiServices): ErrorRequestHandler {
  return async (error: unknown, request, response, next): Promise<void> => {
    if (error instanceof URIError) {
      await admit(request, response, services);
    }
    next(error);
  };
}

/** The libraries' headers, computed once: they are the same for every same-origin request. */
function fixedHeaders({ publicUrl, corsOrigins }: ApiSettings): Map<string, string> {
  const request = new IncomingMessage(new Socket());
  request.method = 'GET';
  const response = new ServerResponse(request);
  const headers = new Map<string, string>();
  response.setHeader = (name, value) => {
    headers.set(name, String(value));
    return response;
  };
  securityHeaders(publicUrl)(request, response, () => undefined);
  apiFromElsewhere(corsOrigins)(request as Request, response as Response, () => undefined);
  return headers;
}

/** JSON and files need no browser features; pages set a policy of their own. */
function securityHeaders(publicUrl: string): ReturnType<typeof helmet> {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    // RFC 6797 7.2: not over http, where a browser would have to ignore it.
    strictTransportSecurity: publicUrl.startsWith('https:'),
  });
}

const EXPOSED = [
  'Content-Disposition',
  'Content-Range',
  'ETag',
  'Idempotent-Replayed',
  'Location',
  'Preference-Applied',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Soundpost-Job',
  'Tus-Checksum-Algorithm',
  'Tus-Extension',
  'Tus-Max-Size',
  'Tus-Resumable',
  'Tus-Version',
  'Upload-Expires',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'X-Request-Id',
];

/** CORS for the origins in CORS_ORIGINS. */
function apiFromElsewhere(origins: readonly string[]): RequestHandler {
  return crossOrigin({
    origins,
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED,
    preflightContinue: true,
  });
}
