/** A job's deliveries and resending them; webhook tests and signing secrets (decisions D). */

import { randomUUID } from 'node:crypto';
import {
  type Delivery,
  DeliveryList,
  EndpointDeliveries,
  EndpointList,
  ResendRequest,
  Resent,
  WebhookSecret,
  WebhookTest,
} from 'soundpost-contract/answers';
import { DeliveryProgress } from 'soundpost-contract/deliveries';
import { ServiceError } from 'soundpost-contract/errors';
import { WebhookTestRequest } from 'soundpost-contract/webhook-events';
import { unlessUnreadable } from 'soundpost-kit/redis/record';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import { z } from 'zod';
import { webhookBody } from '../../followups/kinds/webhook.ts';
import { postWebhook } from '../../followups/post-webhook.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { sendData } from '../answer.ts';
import { ownedJob } from '../job-answer.ts';
import { parseRequest, readJson } from '../request.ts';
import { type ApiServices, keyOf, type Route, type RouteContext } from '../route.ts';

/** The last endpoint on a page: time of its last request in ms, and its address in base64url. */
const CURSOR_FORM = /^(\d{1,15})-([\w-]+)$/;

const EndpointQuery = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z
    .string()
    .regex(CURSOR_FORM, 'must be the nextCursor of an earlier page')
    .optional()
    .meta({ description: 'nextCursor of the previous page' }),
});

const DeliveriesQuery = z.object({
  endpoint: ResendRequest.shape.endpoint.unwrap(),
  status: DeliveryProgress.shape.status.optional().meta({ description: 'Only deliveries in this state' }),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional().meta({ description: 'nextCursor of the previous page' }),
});

export const deliveryRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/jobs/:jobId/deliveries',
    access: { by: 'key', scope: 'read', rate: 'read' },
    docs: {
      operationId: 'listDeliveries',
      summary:
        'List a job’s webhooks, voice messages, transcripts and uploads to destinations, with every attempt',
      tag: 'Webhooks',
      answers: { 200: { description: 'Oldest first; kind says what each is', data: DeliveryList } },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    async handle(context) {
      const record = await ownedJob(context);
      context.response.set('Cache-Control', 'no-store');
      sendData(context.response, 200, { deliveries: await deliveriesOf(record, context.services) });
    },
  },
  {
    method: 'post',
    path: '/v1/jobs/:jobId/deliveries/:deliveryId/replay',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'replayDelivery',
      summary: 'Send a webhook again now, with the same webhook-id',
      tag: 'Webhooks',
      answers: { 202: { description: 'It is being sent', data: DeliveryList } },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND', 'NOT_FOUND'],
    },
    handle: replay,
  },
  {
    method: 'get',
    path: '/v1/endpoints',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'listEndpoints',
      summary: 'List the endpoints that webhooks were posted to, latest first',
      description:
        'An endpoint is a scheme, host, port and path. It is failing after three failures in a row, or after one if it has never answered. It is forgotten two days after the key’s last attempt.',
      tag: 'Webhooks',
      query: EndpointQuery,
      answers: { 200: { description: 'A page of endpoints', data: EndpointList } },
      errors: ['INVALID_REQUEST'],
    },
    handle: listEndpoints,
  },
  {
    method: 'get',
    path: '/v1/deliveries',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'listEndpointDeliveries',
      summary: 'List the deliveries to one endpoint, newest first',
      description: 'Lists the newest 1,000. `GET /v1/jobs/{jobId}/deliveries` shows what each one posts.',
      tag: 'Webhooks',
      query: DeliveriesQuery,
      answers: { 200: { description: 'A page of deliveries', data: EndpointDeliveries } },
      errors: ['INVALID_REQUEST'],
    },
    async handle(context) {
      const { request, response, services } = context;
      const { endpoint, status, limit, cursor: after } = parseRequest(DeliveriesQuery, request.query);
      const choices = { status, limit, after };
      const { page, next } = await services.followUps.deliveriesTo(keyOf(context).id, endpoint, choices);
      response.set('Cache-Control', 'no-store');
      sendData(response, 200, { deliveries: page, nextCursor: next });
    },
  },
  {
    method: 'post',
    path: '/v1/deliveries/resend',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'resendDeliveries',
      summary: 'Resend all of the key’s deliveries that failed since a given time',
      tag: 'Webhooks',
      body: { 'application/json': ResendRequest },
      answers: { 202: { description: 'They are being sent', data: Resent } },
      errors: ['INVALID_REQUEST', 'UNSUPPORTED_MEDIA_TYPE', 'PAYLOAD_TOO_LARGE'],
    },
    handle: resend,
  },
  {
    method: 'post',
    path: '/v1/webhooks/test',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'testWebhook',
      summary: 'Send one signed webhook.test to an address',
      tag: 'Webhooks',
      body: { 'application/json': WebhookTestRequest },
      answers: { 200: { description: 'The receiver answered 2xx', data: WebhookTest } },
      errors: [
        'INVALID_REQUEST',
        'INVALID_WEBHOOK',
        'NOT_FOUND',
        'UNSUPPORTED_MEDIA_TYPE',
        'PAYLOAD_TOO_LARGE',
      ],
    },
    handle: test,
  },
  {
    method: 'get',
    path: '/v1/webhooks/secret',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'getWebhookSecret',
      summary: 'Read the secret that signs webhooks',
      tag: 'Webhooks',
      answers: { 200: { description: 'The current secret', data: WebhookSecret } },
      errors: ['NOT_FOUND'],
    },
    async handle(context) {
      const [secret = ''] = await secretsOf(context);
      await sendSecret(context, secret);
    },
  },
  {
    method: 'post',
    path: '/v1/webhooks/secret',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'rotateWebhookSecret',
      summary: 'Replace the webhook secret',
      description:
        'The old secret also signs for 24 hours. At most five old secrets sign at a time; until the oldest ends, another replacement gets 429.',
      tag: 'Webhooks',
      answers: { 200: { description: 'The new secret', data: WebhookSecret } },
      errors: [],
    },
    async handle(context) {
      await sendSecret(context, await context.services.webhookSecrets.rotate(keyOf(context).id));
    },
  },
];

async function replay(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const record = await ownedJob(context);
  if (!(await services.followUps.replayWebhook(record.jobId, String(request.params.deliveryId)))) {
    throw new ServiceError('NOT_FOUND', 'the job has no such webhook delivery');
  }
  sendData(response, 202, { deliveries: await deliveriesOf(record, services) });
}

export function deliveriesOf(record: JobRecord, { followUps, signer }: ApiServices): Promise<Delivery[]> {
  return followUps.list(record.jobId, (payload) => webhookBody(payload, record, signer));
}

async function listEndpoints(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const { limit, cursor } = parseRequest(EndpointQuery, request.query);
  const [, lastAt, encoded = ''] = CURSOR_FORM.exec(cursor ?? '') ?? [];
  const last = { atMs: Number(lastAt ?? Infinity), endpoint: Buffer.from(encoded, 'base64url').toString() };
  const { page, hasMore } = await services.followUps.endpoints(
    keyOf(context).id,
    limit,
    (one) => one.lastAt < last.atMs || (one.lastAt === last.atMs && one.endpoint > last.endpoint),
  );
  const end = page.at(-1);
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, {
    endpoints: page.map(({ endpoint, failures, failingSinceMs, lastAnswer, lastAt: atMs, pending }) => ({
      endpoint,
      state: failingSinceMs === undefined ? 'ok' : 'failing',
      failures,
      failedSince: failingSinceMs === undefined ? null : new Date(failingSinceMs).toISOString(),
      lastAnswer: lastAnswer || null,
      lastAt: new Date(atMs).toISOString(),
      pending,
    })),
    nextCursor: hasMore && end ? `${end.lastAt}-${Buffer.from(end.endpoint).toString('base64url')}` : null,
  });
}

async function resend(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const { since, endpoint } = parseRequest(ResendRequest, await readJson(request, response));
  const { id } = keyOf(context);
  const resent = await services.followUps.resendWebhooks(id, Date.parse(since), endpoint);
  sendData(response, 202, { resent });
}

async function test(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const body = await readJson(request, response);
  const { url } = parseRequest(WebhookTestRequest, body);
  const text = JSON.stringify({ event: 'webhook.test', timestamp: new Date().toISOString() });
  const secrets = await secretsOf(context);
  try {
    await services.outbound.checkUrl(url, 'webhook');
    const webhook = { id: `test-${randomUUID()}`, url, body: text, secrets };
    const { status, latencyMs } = await postWebhook(services.outbound.post, webhook);
    if (status < 200 || status >= 300) {
      throw invalidWebhook(`the receiver answered ${status}`);
    }
    sendData(response, 200, { status, latencyMs });
  } catch (error) {
    throw error instanceof OutboundRefused || error instanceof OutboundFailed
      ? invalidWebhook(error.message, error)
      : error;
  }
}

async function sendSecret(context: RouteContext, secret: string): Promise<void> {
  const { response, services } = context;
  // Without an answer nobody would know a new secret.
  const untilMs = await services.webhookSecrets.replacedUntilMs(keyOf(context).id).catch(() => undefined);
  response.set('Cache-Control', 'no-store');
  const replaced = untilMs === undefined ? {} : { replacedUntil: new Date(untilMs).toISOString() };
  sendData(response, 200, { secret, ...replaced });
}

/** Throws NOT_FOUND if they cannot be read. */
function secretsOf(context: RouteContext): Promise<readonly string[]> {
  return unlessUnreadable(
    () => context.services.webhookSecrets.of(keyOf(context).id),
    ({ message }) => {
      throw new ServiceError('NOT_FOUND', `${message}: replace it with POST /v1/webhooks/secret`);
    },
  );
}

function invalidWebhook(details: string, cause?: unknown): ServiceError {
  return new ServiceError('INVALID_WEBHOOK', 'the webhook did not accept the test', {
    details: `url: ${details}`,
    cause,
  });
}
