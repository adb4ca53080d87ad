/**
 * `GET|POST /webhooks/<transport>/<instance>`: what a network's own server sends. It has no API
 * key; the transport checks that the request is the network's.
 */
import type { RequestHandler } from 'express';
import { textReader } from 'soundpost-kit/http/json-body';
import { Semaphore } from '../../jobs/semaphore.ts';
import { callerGone } from '../outgoing.ts';
import type { GatewayServices } from '../services.ts';

/** Meta's are at most 3 MB (developers.facebook.com/docs/whatsapp/webhooks "Payload size"). */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Of every refusal, so that a stranger does not learn which instances exist. */
const REFUSED = 403;
/** Each is held in memory; a newcomer among the instances gets a place of its own. */
const bodies = new Semaphore(8, 8);

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
    let release = (): void => undefined;
    try {
      const answer = await sessions.webhook(instance, {
        method: request.method,
        query: new URL(request.originalUrl, 'http://gateway').searchParams,
        header: (name) => request.get(name),
        body: async () => {
          release = await bodies.acquire({ key: instance.id, signal: callerGone(response) });
          return read(request, response).catch(() => undefined);
        },
      });
      response
        .status(answer?.status ?? REFUSED)
        .type('text/plain')
        .send(answer?.text ?? '');
    } finally {
      release();
    }
  };
}
