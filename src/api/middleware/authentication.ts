/** Authenticates a request's key; checks its scope and rate (decisions A6). */
import type { Request, Response } from 'express';
import type { Scope } from 'soundpost-contract/api-keys';
import { ServiceError } from 'soundpost-contract/errors';
import type { AuditLog } from 'soundpost-kit/observe/logger';
import type { RateState } from 'soundpost-kit/redis/rate';
import { admitRequest } from '../../jobs/admission.ts';
import { type ApiKey, type ClaimedKey, claimedId } from '../../jobs/tenants/api-keys.ts';
import type { ConsoleSession } from '../../jobs/tenants/sessions.ts';
import { sessionEnded, sessionOf } from '../console-session.ts';
import { LimitReached } from '../limit-reached.ts';
import type { ApiServices, RouteContext } from '../route.ts';

/** Allowed with a paused key. */
const PAUSED_METHODS = new Set(['GET', 'HEAD', 'DELETE']);

interface Admitted {
  readonly key: ApiKey;
  /** Fields of the requested job record; empty if there is none. */
  readonly record: Readonly<Record<string, string>>;
  /** Of a request without a key of its own. */
  readonly session?: ConsoleSession | undefined;
}

interface Wanted {
  readonly scope: Scope | undefined;
  readonly rate: 'read' | 'submit';
  readonly bearer?: true;
  /** A paused key may do it too, whatever the method. */
  readonly paused?: true;
}

/** For an unknown path: counts as a read and needs no scope. */
const ANYWHERE: Wanted = { scope: undefined, rate: 'read' };

/**
 * Admits a request in one round trip to Redis and sets the RateLimit fields.
 * Throws UNAUTHORIZED, FORBIDDEN for a missing scope or a paused key, or RATE_LIMITED for a used-up
 * minute or too many wrong keys from the address.
 * @param access default: for an unknown path
 * @param jobId also reads this job's record
 */
export async function admit(
  request: Request,
  response: Response,
  services: ApiServices,
  wanted: Wanted = ANYWHERE,
  jobId?: string,
): Promise<Admitted> {
  const { bearer } = wanted;
  const text = request.get('x-api-key') ?? (bearer && bearerToken(request));
  if (text !== undefined) {
    const claim = services.keys.claim(text);
    return admitClaim(request, response, services, wanted, { claim, id: claimedId(text), jobId });
  }
  const session = await sessionOf(request, services);
  if (session === undefined) {
    const also = bearer ? ', or as Authorization: Bearer' : '';
    throw new ServiceError('UNAUTHORIZED', `send an API key in the X-API-Key header${also}`);
  }
  const { claim } = session;
  const admitted = await admitClaim(request, response, services, wanted, { claim, id: claim.id, jobId });
  if (admitted.key.isReplaced) throw sessionEnded();
  return { ...admitted, session };
}

/** Admits a key that comes in a body, as {@link admit} does; a paused one too. */
export function admitKey(
  request: Request,
  response: Response,
  services: ApiServices,
  text: string,
): Promise<Admitted> {
  const claim = services.keys.claim(text);
  const wanted = { ...ANYWHERE, paused: true } as const;
  return admitClaim(request, response, services, wanted, { claim, id: claimedId(text) });
}

/** Whether what a request was admitted by is still good. */
export async function isStillAdmitted({ request, services, session }: RouteContext): Promise<boolean> {
  const { keys, sessions } = services;
  if (session === undefined) return (await keys.authenticate(request.get('x-api-key') ?? '')) !== undefined;
  const claim = await sessions.find(session.token);
  const key = claim && (await keys.check(claim));
  return key !== undefined && !key.isReplaced;
}

interface Claiming {
  /** Undefined if malformed. */
  readonly claim: ClaimedKey | undefined;
  /** Of the key, for the audit. */
  readonly id: string | undefined;
  readonly jobId?: string | undefined;
}

async function admitClaim(
  request: Request,
  response: Response,
  { redis, settings, audit }: ApiServices,
  { scope, rate: policy, paused }: Wanted,
  { claim, id, jobId }: Claiming,
): Promise<Admitted> {
  // Submissions are charged where they are reserved: the whole batch or nothing.
  const [limit, cost] = policy === 'submit' ? [settings.submitPerMinute, 0] : [settings.readPerMinute, 1];
  const address = request.ip ?? '';
  const admission = await admitRequest(redis, {
    claim,
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
    noteRefusal(audit, response, id);
    throw new ServiceError('UNAUTHORIZED', 'the API key is not valid');
  }
  const { key, allowed, rate, record } = admission;
  response.locals.key = key.id;
  noteKey(audit, response, key.id);
  setRateLimit(response, policy, rate);
  if (scope !== undefined && !key.scopes.includes(scope)) {
    noteRefusal(audit, response, key.id);
    throw new ServiceError('FORBIDDEN', `this needs a key with the scope ${scope}`);
  }
  if (key.pausedAtMs !== undefined && !paused && !PAUSED_METHODS.has(request.method)) {
    noteRefusal(audit, response, key.id);
    throw new ServiceError(
      'FORBIDDEN',
      'this key is paused and can only read and delete; ask the operator of the service',
    );
  }
  if (!allowed) {
    throw new LimitReached('reads', `this key may make ${limit} requests per minute`, rate.resetSeconds);
  }
  return { key, record };
}

/** RFC 6750, 2.1. */
export function bearerToken(request: Request): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.get('authorization') ?? '')?.[1];
}

/** RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers). */
export function setRateLimit(response: Response, policy: string, rate: RateState, windowSeconds = 60): void {
  response.setHeader('RateLimit-Policy', `"${policy}";q=${rate.limit};w=${windowSeconds}`);
  response.setHeader('RateLimit', `"${policy}";r=${rate.remaining};t=${rate.resetSeconds}`);
}

// Audits each key that changed something, and each refusal (docs/operations/security.md "Audit").

interface Use {
  readonly key: string | undefined;
  readonly refused: boolean;
}

const uses = new WeakMap<Request, Use>();

/** The admitted key; reads are not audited. */
function noteKey(audit: AuditLog, response: Response, key: string): void {
  if (!['GET', 'HEAD', 'OPTIONS'].includes(response.req.method)) {
    note(audit, response, { key, refused: false });
  }
}

/** @param key the id that the caller claims, or has */
function noteRefusal(audit: AuditLog, response: Response, key: string | undefined): void {
  note(audit, response, { key, refused: true });
}

/** The last note is recorded when the request ends. */
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
    // The pattern, not the path: after a refusal the path can contain anything.
    route: `${request.method} ${request.route?.path ?? '(none)'}`,
    outcome: response.writableFinished ? response.statusCode : 'aborted',
    address: request.ip,
    requestId: response.locals.requestId,
  });
}
