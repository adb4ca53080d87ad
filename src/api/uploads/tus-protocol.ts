/** What the API says of tus 1.0 (https://tus.io/protocols/resumable-upload) before anybody uses it; `tus.ts` does the rest, loaded with the first upload. */

import type { Request } from 'express';
import type { ApiSettings, RouteContext } from '../route.ts';

export const TUS_VERSION = '1.0.0';

/** Extensions that hold here; `checksum` is ours. A length that is not known yet is not among them. */
export const tusExtensions = ['creation', 'creation-with-upload', 'expiration', 'termination', 'checksum'];

/** Names as tus has them, which are those of node:crypto too, and the lengths of their digests in bytes. */
export const digestBytes: Readonly<Record<string, number>> = { sha1: 20, sha256: 32, sha512: 64, md5: 16 };

/** Whether the request speaks tus. */
export function speaksTus({ request }: RouteContext): boolean {
  return request.get('tus-resumable') !== undefined;
}

/** Answer of OPTIONS: what a tus client looks up before it begins. */
export function tusDiscovery({ maxInputBytes }: ApiSettings): Record<string, string> {
  return {
    'Tus-Resumable': TUS_VERSION,
    'Tus-Version': TUS_VERSION,
    'Tus-Max-Size': String(maxInputBytes),
    'Tus-Extension': tusExtensions.join(','),
    'Tus-Checksum-Algorithm': Object.keys(digestBytes).join(','),
  };
}

// X-HTTP-Method-Override of tus 1.0: for clients whose environment sends no PATCH or DELETE.

const OVERRIDES = ['PATCH', 'DELETE', 'HEAD'];

/** Before routing: a POST that speaks tus and names another method is that method. */
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
