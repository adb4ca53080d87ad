/**
 * The cookie of the console's session, and the header that must come with it (decisions A6).
 * Cookies ignore ports, so the browser also sends the cookie from the gateway's pages and for links
 * in them. Only a script of our own origin can send the header.
 */
import type { CookieOptions, Request } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import type { ConsoleSession } from '../jobs/tenants/sessions.ts';
import type { ApiServices } from './route.ts';

const TOKEN_FORM = /^[\w-]{43}$/;

/** With the port, as installations on one host would overwrite one another's. */
export function cookieName(request: Request): string {
  return `soundpost-session-${portOf(request)}`;
}

/** @param publicUrl absolute base of the service */
export function cookieOptions(request: Request, publicUrl: string): CookieOptions {
  const scheme = new URL(request.get('origin') ?? (request.secure ? 'https://x' : publicUrl)).protocol;
  return { httpOnly: true, sameSite: 'strict', secure: scheme === 'https:', path: '/' };
}

/** Undefined if the request has no such cookie. */
export function tokenOf(request: Request): string | undefined {
  const name = `${cookieName(request)}=`;
  const cookies = request.headers.cookie?.split(/; */) ?? [];
  const token = cookies.find((cookie) => cookie.startsWith(name))?.slice(name.length);
  return token !== undefined && TOKEN_FORM.test(token) ? token : undefined;
}

/**
 * The session that a request without a key uses; undefined if it has none.
 * @throws ServiceError FORBIDDEN if it is not the console's, UNAUTHORIZED if the session has ended
 */
export async function sessionOf(
  request: Request,
  { sessions, settings }: ApiServices,
): Promise<ConsoleSession | undefined> {
  const token = tokenOf(request);
  if (token === undefined) return undefined;
  demandConsole(request, settings.publicUrl);
  const claim = await sessions.find(token);
  if (claim === undefined) throw sessionEnded();
  return { token, claim };
}

export function sessionEnded(): ServiceError {
  return new ServiceError('UNAUTHORIZED', 'the session has ended: sign in again');
}

/** Throws FORBIDDEN. @param publicUrl absolute base of the service */
export function demandConsole(request: Request, publicUrl: string): void {
  if (request.get('soundpost-console') !== '1') {
    throw new ServiceError(
      'FORBIDDEN',
      'a session needs the header Soundpost-Console: 1; programs should send an API key',
    );
  }
  const origin = request.get('origin');
  if (origin !== undefined && !isOwn(origin, request, publicUrl)) {
    throw new ServiceError(
      'FORBIDDEN',
      'sessions only work on pages of this service; behind a proxy, set PUBLIC_URL to the address that browsers use',
    );
  }
}

/**
 * A proxy in front may speak TLS without our knowledge; no page of http may pass for one of https.
 */
function isOwn(origin: string, request: Request, publicUrl: string): boolean {
  const own = new URL(publicUrl);
  if (origin === own.origin) return true;
  const isHttps = request.secure || (own.protocol === 'https:' && own.host === request.host);
  const schemes = isHttps ? ['https'] : ['https', 'http'];
  return schemes.some((scheme) => origin === originOf(scheme, request));
}

/** Undefined for a Host that is none. */
function originOf(scheme: string, { host }: Request): string | undefined {
  return URL.canParse(`${scheme}://${host}`) ? new URL(`${scheme}://${host}`).origin : undefined;
}

function portOf(request: Request): string {
  const scheme = request.secure ? 'https' : 'http';
  const { port } = new URL(originOf(scheme, request) ?? 'http://localhost');
  return port || (request.secure ? '443' : '80');
}
