/** Who is asking: the key of a request, its scope and its rate (decisions A6). */
import type { Request, Response } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import type { AuditLog } from 'soundpost-kit/observe/logger';
import type { RateState } from 'soundpost-kit/redis/rate';
import { admitRequest } from '../../jobs/admission.ts';
import { type ApiKey, claimedId } from '../../jobs/tenants/api-keys.ts';
import type { Access, ApiServices } from '../route.ts';

/** What a paused key may still do. */
const PAUSED_METHODS = new Set(['GET', 'HEAD', 'DELETE']);

interface Admitted {
  readonly key: ApiKey;
  /** Fields of the job's record that was to come along; empty where there is none. */
  readonly record: Readonly<Record<string, string>>;
}

/** A request that leads nowhere is counted like one that reads, and needs no scope. */
const ANYWHERE = { scope: undefined, rate: 'read' } as const;

/**
 * Lets the request in, with one question to Redis. Sets the RateLimit fields.
 * Throws UNAUTHORIZED, FORBIDDEN when the key lacks the scope or is paused, RATE_LIMITED when its minute is used up, or when too many wrong keys came from the address.
 * @param access default: of a request that leads nowhere
 * @param jobId a job whose record is to come along
 */
export async function admit(
  request: Request,
  response: Response,
  { redis, keys, settings, audit }: ApiServices,
  {
    scope,
    rate: policy,
  }: Pick<Exclude<Access, { by: 'public' }>, 'scope' | 'rate'> | typeof ANYWHERE = ANYWHERE,
  jobId?: string,
): Promise<Admitted> {
  const text = request.get('x-api-key');
  if (text === undefined) {
    throw new ServiceError('UNAUTHORIZED', 'send an API key in the X-API-Key header');
  }
  // Submissions are taken from the allowance where they are reserved: all of a batch, or nothing.
  const [limit, cost] = policy === 'submit' ? [settings.submitPerMinute, 0] : [settings.readPerMinute, 1];
  const address = request.ip ?? '';
  const admission = await admitRequest(redis, {
    claim: keys.claim(text),
    address,
    policy,
    limit,
    cost,
    jobId,
  });
  if (admission.outcome === 'blocked') {
    throw new ServiceError('RATE_LIMITED', 'too many wrong keys from this address', {
      retryAfterSeconds: admission.retryAfterSeconds,
    });
  }
  if (admission.outcome === 'no-key') {
    noteRefusal(audit, response, claimedId(text));
    throw new ServiceError('UNAUTHORIZED', 'the API key is not valid');
  }
  const { key, allowed, rate, record } = admission;
  noteKey(audit, response, key.id);
  setRateLimit(response, policy, rate);
  if (scope !== undefined && !key.scopes.includes(scope)) {
    noteRefusal(audit, response, key.id);
    throw new ServiceError('FORBIDDEN', `this needs a key with the scope ${scope}`);
  }
  if (key.pausedAtMs !== undefined && !PAUSED_METHODS.has(request.method)) {
    noteRefusal(audit, response, key.id);
    throw new ServiceError(
      'FORBIDDEN',
      'this key is paused: it reads and removes only; ask whoever runs the service',
    );
  }
  if (!allowed) {
    throw new ServiceError('RATE_LIMITED', `this key may make ${limit} requests a minute`, {
      retryAfterSeconds: rate.resetSeconds,
    });
  }
  return { key, record };
}

/** RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers). */
export function setRateLimit(response: Response, policy: 'read' | 'submit', rate: RateState): void {
  response.setHeader('RateLimit-Policy', `"${policy}";q=${rate.limit};w=60`);
  response.setHeader('RateLimit', `"${policy}";r=${rate.remaining};t=${rate.resetSeconds}`);
}

// Leaves a record of each key that changed something, and of each that was refused
// (docs/operations.md "Audit").

interface Use {
  readonly key: string | undefined;
  readonly refused: boolean;
}

const uses = new WeakMap<Request, Use>();

/** The key that was let in; looking at something leaves no record. */
function noteKey(audit: AuditLog, response: Response, key: string): void {
  if (!['GET', 'HEAD', 'OPTIONS'].includes(response.req.method)) {
    note(audit, response, { key, refused: false });
  }
}

/** @param key the id that the caller claims, or has */
function noteRefusal(audit: AuditLog, response: Response, key: string | undefined): void {
  note(audit, response, { key, refused: true });
}

/** What was noted last is recorded when the request is over. */
function note(audit: AuditLog, response: Response, use: Use): void {
  const { req: request } = response;
  const isNoted = uses.has(request);
  uses.set(request, use);
  if (!isNoted) {
    response.once('close', () => record(audit, response, uses.get(request) ?? use));
  }
}

function record(audit: AuditLog, response: Response, { key, refused }: Use): void {
  const { req: request } = response;
  audit({
    event: refused ? 'key refused' : 'key used',
    key,
    // The pattern, not the path: what is in a path may be anything where a key was refused.
    route: `${request.method} ${request.route?.path ?? '(none)'}`,
    outcome: response.writableFinished ? response.statusCode : 'aborted',
    address: request.ip,
    requestId: response.locals.requestId,
  });
}
