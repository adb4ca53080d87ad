/** POST /hooks/gateway: the gateway tells how far a voice message has come (decisions C). */
import { ServiceError } from '../../contract/errors.ts';
import { GatewayEvent, MessageUpdateEvent } from '../../contract/gateway-events.ts';
import { SignedEventHeaders } from '../../contract/request-headers.ts';
import { raiseMessageStatus } from '../../queue/voice-state.ts';
import { redisNow } from '../../redis/clock.ts';
import { isWebhookSigned } from '../../signing/standard-webhooks.ts';
import { readText } from '../json-body.ts';
import type { Route, RouteContext } from '../route.ts';

export const hookRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/hooks/gateway',
    access: { by: 'public' },
    docs: {
      operationId: 'receiveGatewayEvent',
      summary: 'Hear from the messaging gateway how far a voice message has come',
      description:
        'For the gateway alone: its signature (Standard Webhooks 1.0.0) stands for a key. Events other than messages.update are taken and dropped.',
      tag: 'Service',
      headers: SignedEventHeaders,
      body: { 'application/json': GatewayEvent },
      answers: { 204: { description: 'Taken' } },
      errors: ['UNAUTHORIZED', 'INVALID_REQUEST', 'PAYLOAD_TOO_LARGE', 'SERVICE_UNAVAILABLE'],
    },
    handle: gatewayEvent,
  },
];

async function gatewayEvent({ request, response, services }: RouteContext): Promise<void> {
  const body = await readText(request, response);
  const { gatewayEventsSecret, jobTtlSeconds } = services.settings;
  const headers = {
    'webhook-id': request.get('webhook-id') ?? '',
    'webhook-timestamp': request.get('webhook-timestamp') ?? '',
    'webhook-signature': request.get('webhook-signature') ?? '',
  };
  if (!isWebhookSigned(headers, body, gatewayEventsSecret, redisNow())) {
    throw new ServiceError('UNAUTHORIZED', 'the event is not signed by the gateway of this service');
  }
  const event = MessageUpdateEvent.safeParse(JSON.parse(body));
  if (event.success) {
    const { key, status } = event.data.data;
    await raiseMessageStatus(services.redis, key.id, status, jobTtlSeconds);
  }
  // Other events are not for us, and none is worth a retry.
  response.status(204).end();
}
