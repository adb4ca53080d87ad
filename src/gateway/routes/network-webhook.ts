/**
 * `GET|POST /webhooks/<transport>/<instance>`: what a network's own server sends. It has no API
 * key; the transport checks that the request is the network's.
 */
import type { RequestHandler } from 'express';
import { textReader } from 'soundpost-kit/http/json-body';
import type { GatewayServices } from '../services.ts';

/** Meta's are at most 3 MB (developers.facebook.com/docs/whatsapp/webhooks "Payload size"). */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Of every refusal, so that a stranger does not learn which instances exist. */
const REFUSED = 403;

export function networkWebhook({ instances, sessions }: GatewayServices): RequestHandler {
  const read = textReader(MAX_BODY_BYTES);
  return async (request, response, next) => {
    if (request.method !== 'GET' && request.method !== 'POST') return next();
    const { transport, instance: nameOrId } = request.params;
    const instance = await instances.find(String(nameOrId));
    if (instance === undefined || instance.unreadable !== undefined || instance.transport !== transport) {
      response.status(REFUSED).end();
      return;
    }
    const { status, text } = await sessions.webhook(instance, {
      method: request.method,
      query: new URL(request.originalUrl, 'http://gateway').searchParams,
      header: (name) => request.get(name),
      body: request.method === 'POST' ? await read(request, response) : '',
    });
    response
      .status(status === 404 ? REFUSED : status)
      .type('text/plain')
      .send(text ?? '');
  };
}
