/** X-HTTP-Method-Override of tus 1.0: for clients whose environment sends no PATCH or DELETE. */
import type { Request } from 'express';

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
