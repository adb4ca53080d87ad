/** /v1/session: the console signs in and out (decisions A6). */
import { ConsoleSessionState, SessionRequest } from 'soundpost-contract/api-keys';
import { ServiceError } from 'soundpost-contract/errors';
import { ConsoleHeaders } from 'soundpost-contract/request-headers';
import { redisNow } from 'soundpost-kit/redis/clock';
import { z } from 'zod';
import { SESSION_SECONDS } from '../../jobs/tenants/sessions.ts';
import { sendData } from '../answer.ts';
import { cookieName, cookieOptions, demandConsole, tokenOf } from '../console-session.ts';
import { admitKey } from '../middleware/authentication.ts';
import { parseRequest, readJson } from '../request.ts';
import type { Route, RouteContext } from '../route.ts';

export const sessionRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/session',
    access: { by: 'public' },
    docs: {
      operationId: 'beginSession',
      summary: 'Sign in to the console',
      description:
        'Sets a cookie (HttpOnly, SameSite=Strict) that replaces the key for 12 hours, in every operation. Requests with it need the header `Soundpost-Console: 1`. An `Origin`, if sent, must be this service’s own. Other requests get 403. The session ends with `DELETE /v1/session`, or when the key is revoked or rotated. Programs should send the key.',
      tag: 'Keys',
      headers: ConsoleHeaders,
      body: { 'application/json': SessionRequest },
      answers: {
        200: {
          description: 'The session has begun',
          data: ConsoleSessionState,
          headers: { 'Set-Cookie': '`soundpost-session-<port>`' },
        },
      },
      errors: [
        'INVALID_REQUEST',
        'UNAUTHORIZED',
        'FORBIDDEN',
        'RATE_LIMITED',
        'UNSUPPORTED_MEDIA_TYPE',
        'PAYLOAD_TOO_LARGE',
        'SERVICE_UNAVAILABLE',
      ],
    },
    handle: begin,
  },
  {
    method: 'delete',
    path: '/v1/session',
    access: { by: 'public' },
    docs: {
      operationId: 'endSession',
      summary: 'Sign out of the console',
      description: 'Returns the same if there is no session.',
      tag: 'Keys',
      headers: ConsoleHeaders,
      answers: { 200: { description: 'The session has ended', data: z.object({}) } },
      errors: ['FORBIDDEN', 'SERVICE_UNAVAILABLE'],
    },
    handle: end,
  },
];

async function begin(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const { publicUrl } = services.settings;
  demandConsole(request, publicUrl);
  const { key: text } = parseRequest(SessionRequest, await readJson(request, response));
  const { key } = await admitKey(request, response, services, text);
  const claim = services.keys.claim(text);
  if (claim === undefined || key.isReplaced) {
    throw new ServiceError('FORBIDDEN', 'this secret was replaced; sign in with the new one');
  }
  const before = tokenOf(request);
  if (before !== undefined) await services.sessions.end(before);
  const token = await services.sessions.begin(claim);
  const maxAge = SESSION_SECONDS * 1000;
  response.cookie(cookieName(request), token, { ...cookieOptions(request, publicUrl), maxAge });
  response.set('Cache-Control', 'no-store');
  const { id, name, scopes, instances } = key;
  const expiresAt = new Date(redisNow() + maxAge).toISOString();
  sendData(response, 200, { key: { id, name, scopes, instances }, expiresAt });
}

async function end({ request, response, services }: RouteContext): Promise<void> {
  const { publicUrl } = services.settings;
  demandConsole(request, publicUrl);
  const token = tokenOf(request);
  if (token !== undefined) await services.sessions.end(token);
  response.clearCookie(cookieName(request), cookieOptions(request, publicUrl));
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, {});
}
