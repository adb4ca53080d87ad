/** The Express application: the table of routes, and around it what every request goes through. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type Response,
  Router,
} from 'express';
import { ServiceError } from '../contract/errors.ts';
import { sendError } from './answer.ts';
import { consolePage } from './console-page.ts';
import { dispatching, handle } from './dispatch.ts';
import { admit } from './middleware/authentication.ts';
import { crossOrigin } from './middleware/cross-origin.ts';
import { errorHandler } from './middleware/errors.ts';
import { fixedHeaders } from './middleware/fixed-headers.ts';
import type { ApiServices, Route } from './route.ts';
import { batchRoutes } from './routes/batch.ts';
import { deliveryRoutes } from './routes/deliveries.ts';
import { docsRoutes } from './routes/docs.ts';
import { downloadRoutes } from './routes/download.ts';
import { extractRoutes } from './routes/extract.ts';
import { healthRoutes } from './routes/health.ts';
import { hookRoutes } from './routes/hooks.ts';
import { jobEventRoutes } from './routes/job-events.ts';
import { jobRoutes } from './routes/jobs.ts';
import { statusRoutes } from './routes/status.ts';
import { uploadRoutes } from './routes/uploads.ts';
import { usageRoutes } from './routes/usage.ts';
import { voiceMessageRoutes } from './routes/voice-message.ts';
import { webhookSecretRoutes } from './routes/webhook-secret.ts';
import { overrideMethod } from './uploads/method-override.ts';

/** Every route of the service, in the order in which they are documented. */
export const routes: readonly Route[] = [
  ...extractRoutes,
  ...batchRoutes,
  ...uploadRoutes,
  ...statusRoutes,
  ...jobRoutes,
  ...jobEventRoutes,
  ...voiceMessageRoutes,
  ...downloadRoutes,
  ...deliveryRoutes,
  ...webhookSecretRoutes,
  ...usageRoutes,
  ...hookRoutes,
  ...healthRoutes,
  ...docsRoutes(() => routes),
];

/** Webhooks carry paths of this form (audio-extraction.md "Download audio"). */
const PREFIX = '/audio-extract';

/** What Express does before its first layer, which is most of what it costs, is done here only for what is no plain route. */
export function createApp(services: ApiServices): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', 'simple');
  app.set('trust proxy', services.settings.trustProxy);
  const answerAcross = crossOrigin(services.settings.corsOrigins);
  app.use((request, response, next) => {
    const isFromElsewhere = request.headers.origin !== undefined || request.method === 'OPTIONS';
    return isFromElsewhere ? answerAcross(request, response, next) : next();
  });
  app.use(PREFIX, versioned(services));
  app.use(mounted(routes, services));
  if (services.settings.console !== undefined) {
    app.use(consolePage(services.settings.console));
  }
  app.use(answerUnknown(services));
  app.use(answerUndecodable(services));
  const answerError = errorHandler(services.logger);
  app.use(answerError);

  const headers = fixedHeaders(services.settings);
  const dispatch = dispatching(routes, PREFIX, services);
  return (incoming, outgoing) => {
    const { request, response } = asExpress(app, incoming, outgoing);
    response.setHeaders(headers);
    response.locals = { requestId: randomUUID() };
    response.setHeader('X-Request-Id', response.locals.requestId);
    overrideMethod(request);
    const handled = request.headers.origin === undefined ? dispatch(request, response) : undefined;
    if (handled === undefined) {
      app(request, response);
      return;
    }
    handled.catch((error: unknown) =>
      answerError(error, request, response, () => response.socket?.destroy()),
    );
  };
}

/** As Express itself makes them: the same objects, with its methods. */
function asExpress(
  app: Express,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): { request: Request; response: Response } {
  const request: Request = Object.setPrototypeOf(incoming, app.request);
  const response: Response = Object.setPrototypeOf(outgoing, app.response);
  request.res = response;
  return { request, response };
}

function versioned(services: ApiServices): Router {
  return mounted(
    routes.filter(({ path }) => path.startsWith('/v1/')),
    services,
  );
}

function mounted(table: readonly Route[], services: ApiServices): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const route of table) {
    router[route.method](route.path, (request: Request, response: Response) =>
      handle(route, request, response, services),
    );
  }
  for (const path of new Set(table.map((route) => route.path))) {
    const onPath = table.filter((route) => route.path === path);
    router.all(path, answerOtherMethod(onPath, services));
  }
  return router;
}

function methodsOf(onPath: readonly Route[]): string[] {
  const methods = onPath.map((route) => route.method.toUpperCase());
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'];
}

function answerOtherMethod(onPath: readonly Route[], services: ApiServices) {
  const allowed = methodsOf(onPath);
  return async (request: Request, response: Response): Promise<void> => {
    response.set('Allow', allowed.join(', '));
    if (request.method === 'OPTIONS') {
      for (const { discovery } of onPath) {
        response.set(discovery?.(services.settings) ?? {});
      }
      response.status(204).end();
      return;
    }
    await admit(request, response, services);
    sendError(response, new ServiceError('METHOD_NOT_ALLOWED', `use one of ${allowed.join(', ')}`));
  };
}

/** A stranger does not learn which paths there are. */
function answerUnknown(services: ApiServices) {
  return async (request: Request, response: Response, _next: NextFunction): Promise<void> => {
    await admit(request, response, services);
    throw new ServiceError('NOT_FOUND', 'there is nothing at this path');
  };
}

/** Neither is a path that cannot be decoded told from another one. */
function answerUndecodable(services: ApiServices): ErrorRequestHandler {
  return async (error: unknown, request, response, next): Promise<void> => {
    if (error instanceof URIError) {
      await admit(request, response, services);
    }
    next(error);
  };
}
