/** /v1/keys: manages API keys (scope `admin`; decisions A4). */
import { KeyList, KeyState, KeyWithSecret, NewKeyRequest } from 'soundpost-contract/api-keys';
import { ServiceError } from 'soundpost-contract/errors';
import type { AuditLog } from 'soundpost-kit/observe/logger';
import { redisNow } from 'soundpost-kit/redis/clock';
import { z } from 'zod';
import { type ApiKey, claimedId, type StoredApiKey } from '../../jobs/tenants/api-keys.ts';
import { sendData } from '../answer.ts';
import { parseRequest, readJson } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';

/** Of the last key on a page: when it was made, and its id. */
const CURSOR_FORM = /^(\d{1,15})-([a-z0-9]{8})$/;

const ListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(100),
  cursor: z
    .string()
    .regex(CURSOR_FORM, 'must be the nextCursor of an earlier page')
    .optional()
    .meta({ description: 'nextCursor of the previous page' }),
});

const access = { by: 'key', scope: 'admin', rate: 'read' } as const;

export const keyRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/keys',
    access,
    docs: {
      operationId: 'listKeys',
      summary: 'List the keys that have no more access than the caller’s, newest first, without secrets',
      tag: 'Keys',
      query: ListQuery,
      answers: { 200: { description: 'A page of keys, including revoked ones', data: KeyList } },
      errors: ['INVALID_REQUEST'],
    },
    handle: list,
  },
  {
    method: 'post',
    path: '/v1/keys',
    access: { ...access, rate: 'submit' },
    docs: {
      operationId: 'createKey',
      summary: 'Create a key',
      description:
        'Returns the key only once: only an HMAC of it is stored. You cannot grant a scope or an instance that your key lacks; the 403 names it. `Idempotency-Key` is ignored. If you lose the answer, revoke the key and make another.',
      tag: 'Keys',
      body: { 'application/json': NewKeyRequest },
      answers: { 201: { description: 'The new key', data: KeyWithSecret } },
      errors: ['INVALID_REQUEST', 'UNSUPPORTED_MEDIA_TYPE', 'PAYLOAD_TOO_LARGE'],
    },
    handle: create,
  },
  {
    method: 'post',
    path: '/v1/keys/:keyId/rotate',
    access,
    docs: {
      operationId: 'rotateKey',
      summary: 'Rotate a key’s secret',
      description:
        'Returns the new secret only once. The old one works for 24 more hours. At most five old secrets work at a time; until the oldest ends, another rotation gets 429. A key can rotate only itself, with its current secret. The command line can rotate any key.',
      tag: 'Keys',
      answers: { 200: { description: 'The key with its new secret', data: KeyWithSecret } },
      errors: ['NOT_FOUND'],
    },
    handle: rotate,
  },
  {
    method: 'delete',
    path: '/v1/keys/:keyId',
    access,
    docs: {
      operationId: 'revokeKey',
      summary: 'Revoke a key for good',
      description:
        'The key is rejected from the next request on and its event streams end; its jobs go on. A key with more access than the caller’s looks unknown. A key may revoke itself; the answer’s message says so.',
      tag: 'Keys',
      answers: { 200: { description: 'The key, revoked', data: KeyState } },
      errors: ['NOT_FOUND'],
    },
    handle: revoke,
  },
];

async function list(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const caller = keyOf(context);
  const { limit, cursor } = parseRequest(ListQuery, request.query);
  const [, createdAtMs, id = ''] = CURSOR_FORM.exec(cursor ?? '') ?? [];
  const after = createdAtMs === undefined ? undefined : { createdAtMs: Number(createdAtMs), id };
  const keys = (await services.keys.list())
    .filter((key) => mayManage(caller, key) && (after === undefined || olderFirst(key, after) < 0))
    .toSorted((one, other) => olderFirst(other, one));
  const page = keys.slice(0, limit);
  const last = page.at(-1);
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, {
    keys: page.map(keyState),
    nextCursor: keys.length > limit && last ? `${last.createdAtMs}-${last.id}` : null,
  });
}

type Made = Pick<ApiKey, 'id' | 'createdAtMs'>;

function olderFirst(one: Made, other: Made): number {
  return one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : Number(one.id > other.id));
}

async function create(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const caller = managing(context);
  const { name, ...wanted } = parseRequest(NewKeyRequest, await readJson(request, response));
  const scopes = [...new Set(wanted.scopes)];
  const instances = [...new Set(wanted.instances)];
  demandGrantable(caller, { scopes, instances });
  const createdAtMs = redisNow();
  const key = await services.keys.create({ name, scopes, instances }, createdAtMs);
  const id = claimedId(key) ?? '';
  record(context, 'key created', id);
  sendSecret(context, 201, { id, name, scopes, instances, createdAtMs, revoked: false }, key);
}

async function rotate(context: RouteContext): Promise<void> {
  const caller = managing(context);
  const known = await namedKey(context, caller);
  // Every key is a tenant (decisions A4): its secret would open the jobs and files of another one.
  if (known.id !== caller.id) {
    throw new ServiceError(
      'FORBIDDEN',
      'a key can only rotate itself; rotate others with "soundpost keys rotate"',
    );
  }
  const key = await context.services.keys.rotate(known.id);
  if (key === undefined) throw unknownKey();
  record(context, 'key rotated', known.id);
  await keepSession(context, key);
  sendSecret(context, 200, known, key);
}

/** The page that asked must be able to show the secret. If this fails, its session ends instead. */
async function keepSession({ session, services }: RouteContext, key: string): Promise<void> {
  const claim = services.keys.claim(key);
  if (session !== undefined && claim !== undefined) {
    await services.sessions.follow(session.token, claim).catch(() => undefined);
  }
}

async function revoke(context: RouteContext): Promise<void> {
  const { response, services } = context;
  const caller = managing(context);
  const known = await namedKey(context, caller);
  await services.keys.revoke(known.id);
  record(context, 'key revoked', known.id);
  const message =
    known.id === caller.id ? 'this key has revoked itself: it opens nothing any more' : undefined;
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, keyState({ ...known, revoked: true }), message);
}

/** The caller. Elsewhere a paused key may delete, but it manages no keys. */
function managing(context: RouteContext): ApiKey {
  const key = keyOf(context);
  if (key.pausedAtMs !== undefined) {
    throw new ServiceError('FORBIDDEN', 'this key is paused and cannot change keys');
  }
  // An old secret that leaked must not yield a new one.
  if (key.isReplaced === true) {
    throw new ServiceError('FORBIDDEN', 'this secret was replaced; use the new one to change keys');
  }
  return key;
}

/** Throws NOT_FOUND for a revoked key, and for a key with more access than the caller. */
async function namedKey({ request, services }: RouteContext, caller: ApiKey): Promise<StoredApiKey> {
  const key = await services.keys.find(String(request.params.keyId));
  if (key === undefined || key.revoked || !mayManage(caller, key)) throw unknownKey();
  return key;
}

function unknownKey(): ServiceError {
  return new ServiceError('NOT_FOUND', 'this key does not exist, is revoked, or has more access than yours');
}

type Rights = Pick<ApiKey, 'scopes' | 'instances'>;

function mayManage(caller: ApiKey, key: StoredApiKey): boolean {
  return key.id === caller.id || lackOf(caller, key) === undefined;
}

/** Throws FORBIDDEN: a key gives only rights that it has. */
function demandGrantable(caller: ApiKey, wanted: Rights): void {
  const lack = lackOf(caller, wanted);
  if (lack !== undefined) throw new ServiceError('FORBIDDEN', `this key ${lack} and cannot grant it`);
}

/** The first right that the caller does not have. */
function lackOf(caller: ApiKey, { scopes, instances }: Rights): string | undefined {
  const scope = scopes.find((one) => !caller.scopes.includes(one));
  if (scope !== undefined) return `lacks the scope ${scope}`;
  const instance = caller.instances.includes('*')
    ? undefined
    : instances.find((one) => !caller.instances.includes(one));
  return instance === undefined ? undefined : `may not use the instance ${instance}`;
}

/** No further Redis call: if Redis failed now, the secret would be lost. */
function sendSecret({ response }: RouteContext, httpStatus: number, state: StoredApiKey, key: string): void {
  response.set('Cache-Control', 'no-store');
  sendData(response, httpStatus, { ...keyState(state), key });
}

function keyState(key: StoredApiKey): KeyState {
  const { id, name, scopes, instances, createdAtMs, pausedAtMs, revoked, isUnreadable } = key;
  const paused = isUnreadable ? 'unreadable' : pausedAtMs === undefined ? 'active' : 'paused';
  return {
    id,
    name,
    scopes: [...scopes],
    instances: [...instances],
    status: revoked ? 'revoked' : paused,
    createdAt: new Date(createdAtMs).toISOString(),
  };
}

function record(context: RouteContext, event: Parameters<AuditLog>[0]['event'], key: string): void {
  const { request, response, services } = context;
  services.audit({
    event,
    key,
    by: keyOf(context).id,
    address: request.ip,
    requestId: response.locals.requestId,
  });
}
