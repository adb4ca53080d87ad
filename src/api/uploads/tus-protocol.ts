/** tus 1.0 (https://tus.io/protocols/resumable-upload) before an upload; tus.ts does the rest. */

import type { Request } from 'express';
import type { ApiSettings, RouteContext } from '../route.ts';

export const TUS_VERSION = '1.0.0';

/** `checksum` is our own. Deferred lengths are not supported. */
export const tusExtensions = ['creation', 'creation-with-upload', 'expiration', 'termination', 'checksum'];

/** Digest lengths in bytes, by the name in both tus and node:crypto. */
export const digestBytes: Readonly<Record<string, number>> = { sha1: 20, sha256: 32, sha512: 64, md5: 16 };

/** Whether the request speaks tus. */
export function speaksTus({ request }: RouteContext): boolean {
  return request.get('tus-resumable') !== undefined;
}

/** The answer to OPTIONS, which a tus client reads before it begins. */
export function tusDiscovery({ maxInputBytes }: ApiSettings): Record<string, string> {
  return {
    'Tus-Resumable': TUS_VERSION,
    'Tus-Version': TUS_VERSION,
    'Tus-Max-Size': String(maxInputBytes),
    'Tus-Extension': tusExtensions.join(','),
    'Tus-Checksum-Algorithm': Object.keys(digestBytes).join(','),
  };
}

// X-HTTP-Method-Override of tus 1.0: for clients that cannot send PATCH or DELETE.

const OVERRIDES = ['PATCH', 'DELETE', 'HEAD'];

/** Before routing: turns a tus POST that names another method into that method. */
export function overrideMethod(request: Request): void {
  if (request.method !== 'POST') {
    return;
  }
  const method = request.get('x-http-method-override')?.toUpperCase();
  const speaksTus = request.get('tus-resumable') !== undefined;
  if (speaksTus && method !== undefined && OVERRIDES.includes(method)) {
    request.method = method;
  }
}
