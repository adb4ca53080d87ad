/** POST /hooks/gateway: the gateway reports a voice message's progress (decisions C). */
import type { Request } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import { GatewayEvent } from 'soundpost-contract/gateway-events';
import { SignedEventHeaders } from 'soundpost-contract/request-headers';
import { redisNow } from 'soundpost-kit/redis/clock';
import { isSameSecret, isWebhookSigned } from 'soundpost-kit/signing/signatures';
import { z } from 'zod';
import type { GatewayAdapter, StatusUpdate } from '../../followups/gateways/adapter.ts';
import { gatewayAdapters } from '../../followups/gateways/adapters.ts';
import { raiseMessageStatus, readVoice } from '../../followups/state/voice.ts';
import { countWrongCredential } from '../../jobs/admission.ts';
import { CHANGE_CHANNEL, notePartId, webhookId } from '../../jobs/names.ts';
import { findJob } from '../job-answer.ts';
import { bearerToken } from '../middleware/authentication.ts';
import { readText } from '../request.ts';
import type { Route, RouteContext } from '../route.ts';

/** For servers that can neither sign nor set a header. */
const TokenQuery = z.object({
  token: z.string().optional().meta({ description: 'GATEWAY_EVENTS_TOKEN, for servers that cannot sign' }),
});

export const hookRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/hooks/gateway',
    access: { by: 'public' },
    docs: {
      operationId: 'receiveGatewayEvent',
      summary: 'Receive the status of voice messages from the messaging gateway',
      description:
        'Only for the gateway, which signs its requests (Standard Webhooks 1.0.0). Another server sends GATEWAY_EVENTS_TOKEN as `token` in the query or as `Authorization: Bearer`. Only messages.update is used; other events are ignored. With GATEWAY_KIND=waha the body is a `message.ack` of WAHA, with wuzapi a `ReadReceipt` of wuzapi.',
      tag: 'Service',
      headers: SignedEventHeaders.partial(),
      query: TokenQuery,
      body: { 'application/json': GatewayEvent },
      answers: { 204: { description: 'Accepted' } },
      errors: ['UNAUTHORIZED', 'RATE_LIMITED', 'INVALID_REQUEST', 'PAYLOAD_TOO_LARGE', 'SERVICE_UNAVAILABLE'],
    },
    handle: gatewayEvent,
  },
];

async function gatewayEvent(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const { gatewayEventsSecret, gatewayEventsToken, gatewayKind } = services.settings;
  const shown = bearerToken(request) ?? request.query.token;
  const isByToken = typeof shown === 'string';
  if (isByToken && !(gatewayEventsToken !== undefined && isSameSecret(shown, gatewayEventsToken))) {
    await refuse(context, 'the token is not GATEWAY_EVENTS_TOKEN');
  }
  // Nothing is read for a sender that shows neither.
  if (!isByToken && request.get('webhook-signature') === undefined) await refuse(context, UNSIGNED);
  const body = await readText(request, response);
  if (!isByToken && !isSigned(request, body, gatewayEventsSecret)) await refuse(context, UNSIGNED);
  for (const update of readUpdates(gatewayAdapters[gatewayKind], body)) await takeUpdate(context, update);
  // Other events are ignored; a retry would not help.
  response.status(204).end();
}

const UNSIGNED = 'the event has no valid signature of the gateway and no token';

/** Counts a wrong token or signature as a wrong API key. */
async function refuse(
  { request, response, services: { audit, redis } }: RouteContext,
  message: string,
): Promise<never> {
  const address = request.ip ?? '';
  const retryAfterSeconds = await countWrongCredential(redis, address);
  if (retryAfterSeconds !== undefined) {
    throw new ServiceError('RATE_LIMITED', 'too many wrong keys from this address', { retryAfterSeconds });
  }
  const { requestId } = response.locals;
  audit({
    event: 'key refused',
    key: 'events',
    route: 'POST /hooks/gateway',
    outcome: 401,
    address,
    requestId,
  });
  throw new ServiceError('UNAUTHORIZED', message);
}

async function takeUpdate({ services }: RouteContext, update: StatusUpdate): Promise<void> {
  const { redis, followUps, settings } = services;
  const { status, origin } = await raiseMessageStatus(redis, update, settings.jobTtlSeconds);
  if (update.status !== 'ERROR' || status !== 'ERROR' || origin === undefined) return;
  const { jobId, sendId, part, round, key, attempts } = origin;
  const record = await findJob(services, jobId);
  if (record === undefined) return;
  // The worker may not have recorded yet that it was sent.
  const outcome = { status: 'sent', key, messageStatus: status, error: null } as const;
  // Under an id of its own, so an event that comes twice is announced once.
  await followUps.addWebhook(record, {
    deliveryId: webhookId(`${notePartId(sendId, part)}-${round}-undelivered`),
    event: 'voice.updated',
    voiceMessage: await readVoice(redis, record, sendId, { part, outcome, attempts }),
  });
  await redis.publish(CHANGE_CHANNEL, jobId);
}

function readUpdates(adapter: GatewayAdapter, body: string): readonly StatusUpdate[] {
  try {
    return adapter.updates(body);
  } catch (cause) {
    throw new ServiceError('INVALID_REQUEST', 'the body is not valid JSON', { cause });
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
