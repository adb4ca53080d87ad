/**
 * bull-board under `/admin/queues`, for whoever has ADMIN_KEY. It only shows: its buttons would retry, remove and clean behind the back of the service, to which the BullMQ
 * job is the job's record (docs/decisions/0002-bullmq-record-and-flow.md).
 */
import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { ExpressAdapter } from '@bull-board/express';
import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import helmet from 'helmet';
import { application } from 'soundpost-kit/http/routes';
import type { AuditLog, Logger } from 'soundpost-kit/observe/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { isSameSecret } from 'soundpost-kit/signing/same-secret';
import { admitAdmin } from '../../jobs/admission.ts';
import type { Queues } from '../../jobs/open-queue.ts';
import { DiscreetAdapter } from './discreet-adapter.ts';

interface BoardOptions {
  /** Of the role `request`. The caller closes it. */
  readonly redis: Redis;
  readonly queues: Queues;
  /** ADMIN_KEY. */
  readonly key: string;
  /** Proxies in front whose forwarded address is believed. */
  readonly trustProxy: number;
  readonly audit: AuditLog;
  readonly logger: Logger;
}

export interface Board {
  /** Answers what is asked of the board, and leaves the rest to the handler. */
  readonly before: (handler: RequestListener) => RequestListener;
}

const PATH = '/admin/queues';
const MOST_JOBS_A_PAGE = 100;

export function openBoard(options: BoardOptions): Board {
  const pages = new ExpressAdapter().setBasePath(PATH);
  createBullBoard({
    queues: Object.values(options.queues).map((queue) => new DiscreetAdapter(queue, { readOnlyMode: true })),
    serverAdapter: pages,
    options: {
      uiConfig: {
        boardTitle: 'Soundpost',
        hideDocsLink: true,
        // CLIENT LIST, at each look.
        showWorkers: false,
      },
    },
  });
  const app = application(options.trustProxy);
  app.use(PATH, securityHeaders(), admission(options), onlyLooking, pages.getRouter());
  app.use((_request, response) => refuse(response, 404, 'there is nothing at this path'));
  app.use(failing(options.logger));
  return {
    before: (handler) => (request, response) => {
      const path = request.url?.split('?', 1)[0] ?? '';
      const isOurs = path === PATH || path.startsWith(`${PATH}/`);
      (isOurs ? app : handler)(request, response);
    },
  };
}

/** RFC 7617: any user, the key as password. */
function admission({ redis, key, audit }: BoardOptions): RequestHandler {
  return async (request, response, next) => {
    const address = request.ip ?? '';
    const given = /^Basic +(\S+)$/i.exec(request.get('authorization') ?? '')?.[1];
    if (given === undefined) {
      askForKey(response);
      return;
    }
    const password = Buffer.from(given, 'base64')
      .toString('utf8')
      .replace(/^[^:]*:/, '');
    const admitted = await admitAdmin(redis, address, isSameSecret(password, key));
    if (admitted === 'admitted') {
      next();
    } else if (admitted === 'refused') {
      const requestId = randomUUID();
      response.setHeader('X-Request-Id', requestId);
      const route = `${request.method} ${PATH}`;
      audit({ event: 'key refused', key: 'admin', route, outcome: 401, address, requestId });
      askForKey(response);
    } else {
      response.setHeader('Retry-After', String(admitted.retryAfterSeconds));
      refuse(response, 429, 'too many wrong keys came from this address');
    }
  };
}

function askForKey(response: Response): void {
  response.setHeader('WWW-Authenticate', 'Basic realm="Soundpost", charset="UTF-8"');
  refuse(response, 401, 'give ADMIN_KEY as the password, with any user');
}

/** bull-board refuses what changes something, too; here nothing but looking gets as far. */
const onlyLooking: RequestHandler = (request, response, next) => {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    refuse(response, 405, 'the board only shows');
  } else if (Number(request.query.jobsPerPage ?? 0) > MOST_JOBS_A_PAGE) {
    refuse(response, 400, `jobsPerPage: at most ${MOST_JOBS_A_PAGE}`);
  } else {
    next();
  }
};

function failing(logger: Logger): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    logger.error({ err: error }, 'the board could not answer');
    if (response.headersSent) next(error);
    else refuse(response, 503, 'the board cannot be shown now');
  };
}

function refuse(response: Response, status: number, sentence: string): void {
  response.status(status).type('text/plain').send(`${sentence}\n`);
}

/** The page brings styles along, and a font of its maker's from elsewhere, which stays there. */
function securityHeaders(): RequestHandler {
  const headers = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        baseUri: ["'self'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // Whether there is TLS in front is the proxy's to say.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
  });
  return (request, response, next) => {
    response.setHeader('Cache-Control', 'no-store');
    headers(request, response, next);
  };
}
