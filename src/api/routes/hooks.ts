/** POST /hooks/gateway: the gateway reports a voice message's progress (decisions C). */
import type { Request } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import { GatewayEvent, StatusReport } from 'soundpost-contract/gateway-events';
import { SignedEventHeaders } from 'soundpost-contract/request-headers';
import { redisNow } from 'soundpost-kit/redis/clock';
import { isSameSecret, isWebhookSigned } from 'soundpost-kit/signing/signatures';
import { z } from 'zod';
import { raiseMessageStatus } from '../../followups/state/voice.ts';
import { readText } from '../request.ts';
import type { Route, RouteContext } from '../route.ts';

/** For servers that can neither sign nor set a header. */
const TokenQuery = z.object({
  token: z.string().optional().meta({ description: 'GATEWAY_EVENTS_TOKEN, of a server that cannot sign' }),
});

export const hookRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/hooks/gateway',
    access: { by: 'public' },
    docs: {
      operationId: 'receiveGatewayEvent',
      summary: 'Hear from the messaging gateway how far a voice message has come',
      description:
        'For the gateway alone: its signature (Standard Webhooks 1.0.0) stands for a key; another server shows GATEWAY_EVENTS_TOKEN as `token` in the query or as `Authorization: Bearer`. Events other than messages.update are taken and dropped.',
      tag: 'Service',
      headers: SignedEventHeaders.partial(),
      query: TokenQuery,
      body: { 'application/json': GatewayEvent },
      answers: { 204: { description: 'Taken' } },
      errors: ['UNAUTHORIZED', 'INVALID_REQUEST', 'PAYLOAD_TOO_LARGE', 'SERVICE_UNAVAILABLE'],
    },
    handle: gatewayEvent,
  },
];

async function gatewayEvent({ request, response, services }: RouteContext): Promise<void> {
  const body = await readText(request, response);
  const { gatewayEventsSecret, gatewayEventsToken, jobTtlSeconds } = services.settings;
  const shown = request.get('authorization')?.match(/^Bearer +(\S+)$/i)?.[1] ?? request.query.token;
  if (typeof shown === 'string') {
    if (gatewayEventsToken === undefined || !isSameSecret(shown, gatewayEventsToken)) {
      throw new ServiceError('UNAUTHORIZED', 'the token is not GATEWAY_EVENTS_TOKEN');
    }
  } else if (!isSigned(request, body, gatewayEventsSecret)) {
    throw new ServiceError(
      'UNAUTHORIZED',
      'the event is not signed by the gateway of this service, and shows no token',
    );
  }
  const event = StatusReport.safeParse(parseJson(body));
  for (const update of event.data?.data ?? []) {
    if (update === null) continue;
    await raiseMessageStatus(services.redis, update.key.id, update.status, jobTtlSeconds);
  }
  // Other events are ignored; a retry would not help.
  response.status(204).end();
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new ServiceError('INVALID_REQUEST', 'the body is not valid JSON', { cause: error });
  }
}

function isSigned(request: Request, body: string, secret: string): boolean {
  const headers = {
    'webhook-id': request.get('webhook-id') ?? '',
    'webhook-timestamp': request.get('webhook-timestamp') ?? '',
    'webhook-signature': request.get('webhook-signature') ?? '',
  };
  return isWebhookSigned(headers, body, secret, redisNow());
}
