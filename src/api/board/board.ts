/**
 * bull-board under `/admin/queues`, for ADMIN_KEY. Read-only: its buttons would change BullMQ jobs,
 * which are the service's job records (docs/decisions/0002-bullmq-record-and-flow.md).
 */
import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import helmet from 'helmet';
import { ErrorCode } from 'soundpost-contract/errors';
import { application } from 'soundpost-kit/http/routes';
import type { AuditLog, Logger } from 'soundpost-kit/observe/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import { isSameSecret } from 'soundpost-kit/signing/signatures';
import { countWrongCredential } from '../../jobs/admission.ts';
import type { Queues } from '../../jobs/open-queue.ts';

interface BoardOptions {
  /** Of the role `request`. The caller closes it. */
  readonly redis: Redis;
  readonly queues: Queues;
  /** ADMIN_KEY. */
  readonly key: string;
  /** Number of proxies whose forwarded address is trusted. */
  readonly trustProxy: number;
  readonly audit: AuditLog;
  readonly logger: Logger;
}

interface Board {
  /** Answers the board's requests and passes all others to the handler. */
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
        // Would run CLIENT LIST on each refresh.
        showWorkers: false,
      },
    },
  });
  const app = application(options.trustProxy);
  app.use(PATH, securityHeaders(), admission(options), onlyLooking, pages.getRouter());
  app.use((_request, response) => refuse(response, 404, 'nothing was found at this path'));
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
    // The right one is admitted whatever else came from its address.
    if (isSameSecret(password, key)) {
      next();
      return;
    }
    const retryAfterSeconds = await countWrongCredential(redis, address);
    if (retryAfterSeconds !== undefined) {
      response.setHeader('Retry-After', String(retryAfterSeconds));
      refuse(response, 429, 'too many wrong keys came from this address');
      return;
    }
    const requestId = randomUUID();
    response.setHeader('X-Request-Id', requestId);
    const route = `${request.method} ${PATH}`;
    audit({ event: 'key refused', key: 'admin', route, outcome: 401, address, requestId });
    askForKey(response);
  };
}

function askForKey(response: Response): void {
  response.setHeader('WWW-Authenticate', 'Basic realm="Soundpost", charset="UTF-8"');
  refuse(response, 401, 'give ADMIN_KEY as the password, with any user');
}

/** bull-board itself rejects changes as well; here they do not even reach it. */
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

/** The page has inline styles, and a remote font that stays blocked. */
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
    // Only the proxy in front knows whether there is TLS.
    strictTransportSecurity: false,
    referrerPolicy: { policy: 'no-referrer' },
  });
  return (request, response, next) => {
    response.setHeader('Cache-Control', 'no-store');
    headers(request, response, next);
  };
}

// A list of the fields shown, so that a new payload field is not exposed by accident.

/** Paths without array indices. Not `opts.telemetry`: its `tracestate` is the callers' own. */
const SHOWN = [
  /^job\.(id|name|timestamp|processedOn|processedBy|finishedOn|delay|priority|attemptsMade|attemptsStarted|stalledCounter)$/,
  /^job\.opts\.(jobId|attempts|delay|priority|parent\.(id|queue))$/,
  /^job\.progress(\.(progress|currentStep))?$/,
  /^job\.data\.(version|tenant|jobId|batchId|retryOf|deliveryId|instanceId|event|eventTimeMs|sendId|name)$/,
  /^job\.data\.(source\.(type|file|name)|options\.(priority|filename)|outputs?\..*)$/,
  /^job\.data\.(options\.voiceMessage|request)\.(instance|delay)$/,
  /^job\.returnvalue\.(version|status|messageStatus|error\.code|voice\.fitsVoiceBubble)$/,
  /^job\.returnvalue\.(inputFile|outputFile|otherFiles|voice)\.(name|filename|size|duration|format|bitrate|codec|copied|sha256|storageKey|expiresAt)$/,
];
/** The path can be a secret. */
const HOST_ONLY = /^job\.data\.(url|origin|options\.webhook)$/;
/** Failure texts of follow-ups: ours (packages/outbound/src, src/followups/kinds) and BullMQ's. */
const FAILURES = [
  /^the (receiver|gateway|transcriber) answered \d{3}$/,
  /^the destination answered with status \d{3}(; redirects are not followed)?$/,
  /^the (destination took too long for the whole file|receiver took too long to answer)$/,
  /^(the server could not be reached|the connection broke before the end|no trusted TLS connection could be made)$/,
  /^the (stored file could not be read|record of the job has expired|webhook is switched off)$/,
  /^there is no (transcriber|address for events)$/,
  /^job stalled more than allowable limit$/,
];

/** @param job as serialized by BullMQ */
function shownJob(job: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // A stack trace starts with the failure text.
  return { ...(shown(job, 'job') as object), failedReason: shownFailure(job.failedReason), stacktrace: [] };
}

/** Drops objects without listed fields: their names can come from callers. */
function shown(value: unknown, path: string): unknown {
  if (typeof value === 'object' && value !== null) {
    const inner = Object.entries(value)
      .map(([name, field]) => [name, shown(field, Array.isArray(value) ? path : `${path}.${name}`)] as const)
      .filter(([, field]) => field !== undefined);
    if (inner.length === 0) return undefined;
    return Array.isArray(value) ? inner.map(([, field]) => field) : Object.fromEntries(inner);
  }
  const url = URL.parse(String(value));
  if (HOST_ONLY.test(path)) return url && `${url.origin}/…`;
  if (path === 'job.data.source.url') return url && url.origin + url.pathname;
  return SHOWN.some((listed) => listed.test(path)) ? value : undefined;
}

/** An extraction fails with a contract error whose message and details can quote the caller. */
function shownFailure(reason: unknown): string | undefined {
  if (typeof reason !== 'string' || reason === '') return undefined;
  if (FAILURES.some((known) => known.test(reason))) return reason;
  return ErrorCode.safeParse(/"code":"(\w+)"/.exec(reason)?.[1]).data ?? '…';
}

// bull-board's adapter, limited to the listed fields; its own formatters do not filter.

type Job = NonNullable<Awaited<ReturnType<BullMQAdapter['getJob']>>>;
type FlowProducer = NonNullable<Awaited<ReturnType<BullMQAdapter['getFlowProducer']>>>;
type Tree = Awaited<ReturnType<FlowProducer['getFlow']>>;

class DiscreetAdapter extends BullMQAdapter {
  override async getJob(id: string): Promise<Job | undefined> {
    const job = await super.getJob(id);
    return job && discreet(job);
  }

  override async getJobs(...asked: Parameters<BullMQAdapter['getJobs']>): Promise<Job[]> {
    return (await super.getJobs(...asked)).map(discreet);
  }

  /** The service writes no job logs. */
  override async getJobLogs(): Promise<string[]> {
    return [];
  }

  override async getFlowProducer(): Promise<FlowProducer | null> {
    const producer = await super.getFlowProducer();
    const getFlow: FlowProducer['getFlow'] = async (asked) => discreetTree(await producer?.getFlow(asked));
    return producer && Object.create(producer, { getFlow: { value: getFlow } });
  }
}

/** bull-board reads a job's JSON; in a flow also its progress and its children's failures. */
function discreet(job: Job): Job {
  const json = shownJob({ ...job.toJSON() });
  return Object.defineProperties(job, {
    toJSON: { value: () => json },
    progress: { value: json.progress ?? 0 },
    getIgnoredChildrenFailures: { value: async () => ({}) },
  });
}

function discreetTree(tree: Tree | undefined): Tree {
  if (tree?.job) discreet(tree.job);
  for (const child of tree?.children ?? []) discreetTree(child);
  // BullMQ's type ignores that a job can be gone.
  return tree as Tree;
}
