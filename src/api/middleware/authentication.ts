/** Who is asking: the key of a request, its scope and its rate (decisions A6). */
import type { Request, Response } from 'express';
import { ServiceError } from '../../contract/errors.ts';
import { type ApiKey, claimedId } from '../../queue/api-keys.ts';
import { takeRate } from '../../queue/rate.ts';
import type { RateState } from '../../queue/reservation.ts';
import type { Access, ApiServices } from '../route.ts';
import { noteKey, noteRefusal } from './audit.ts';

/** Wrong keys a minute from one address, before its keys are not even looked at. */
const FAILED_KEYS_PER_MINUTE = 60;

/** Throws UNAUTHORIZED or RATE_LIMITED. */
export async function authenticate(request: Request, services: ApiServices): Promise<ApiKey> {
  const address = request.ip ?? '';
  const text = request.get('x-api-key');
  if (text === undefined) {
    throw new ServiceError('UNAUTHORIZED', 'send an API key in the X-API-Key header');
  }
  const failures = await takeRate(services.redis, 'failed-key', address, FAILED_KEYS_PER_MINUTE, 0);
  if (failures.rate.remaining === 0) {
    throw new ServiceError('RATE_LIMITED', 'too many wrong keys from this address', {
      retryAfterSeconds: failures.rate.resetSeconds,
    });
  }
  const key = await services.keys.authenticate(text);
  if (key === undefined) {
    noteRefusal(request, claimedId(text));
    await takeRate(services.redis, 'failed-key', address, FAILED_KEYS_PER_MINUTE, 1);
    throw new ServiceError('UNAUTHORIZED', 'the API key is not valid');
  }
  noteKey(request, key.id);
  return key;
}

/** Throws FORBIDDEN when the key lacks the scope, RATE_LIMITED when its minute is used up. Sets the RateLimit fields. */
export async function admit(
  key: ApiKey,
  access: Exclude<Access, { by: 'public' }>,
  response: Response,
  services: ApiServices,
): Promise<void> {
  const refusal = await takeAllowance(key, access.rate, response, services);
  if (!key.scopes.includes(access.scope)) {
    noteRefusal(response.req, key.id);
    throw new ServiceError('FORBIDDEN', `this needs a key with the scope ${access.scope}`);
  }
  if (refusal !== undefined) {
    throw refusal;
  }
}

/** A request that leads nowhere is counted like one that reads. Throws RATE_LIMITED; sets the RateLimit fields. */
export async function admitAnywhere(key: ApiKey, response: Response, services: ApiServices): Promise<void> {
  const refusal = await takeAllowance(key, 'read', response, services);
  if (refusal !== undefined) {
    throw refusal;
  }
}

/** @returns the RATE_LIMITED to throw when the allowance is used up */
async function takeAllowance(
  key: ApiKey,
  policy: 'read' | 'submit',
  response: Response,
  { redis, settings }: ApiServices,
): Promise<ServiceError | undefined> {
  // Submissions are taken from the allowance where they are reserved: all of a batch, or nothing.
  const [limit, cost] = policy === 'submit' ? [settings.submitPerMinute, 0] : [settings.readPerMinute, 1];
  const { allowed, rate } = await takeRate(redis, policy, key.id, limit, cost);
  setRateLimit(response, policy, rate);
  return allowed
    ? undefined
    : new ServiceError('RATE_LIMITED', `this key may make ${limit} requests a minute`, {
        retryAfterSeconds: rate.resetSeconds,
      });
}

/** RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers). */
export function setRateLimit(response: Response, policy: 'read' | 'submit', rate: RateState): void {
  response.set('RateLimit-Policy', `"${policy}";q=${rate.limit};w=60`);
  response.set('RateLimit', `"${policy}";r=${rate.remaining};t=${rate.resetSeconds}`);
}
