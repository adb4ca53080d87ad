/** An instance's webhook (decisions B "Instances"): settings, deliveries and resending. */

import type { Instance } from 'soundpost-chat/instances';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { foreignSwitches } from 'soundpost-contract/gateway-switches';
import {
  eventsWanted,
  InstanceDeliveries,
  ReplayRequest,
  SetWebhookRequest,
  WebhookAnswer,
} from 'soundpost-contract/gateway-webhooks';
import { OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { z } from 'zod';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';
import { addressOf } from '../webhooks/webhooks.ts';

export function webhookRoutes({ webhooks, deliveries, outbound, answersAsPublic }: GatewayServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/webhook/set/:instance',
      access: 'instance',
      docs: {
        operationId: 'setWebhook',
        summary: 'Set the webhook of an instance',
        description:
          'Events are signed by Standard Webhooks 1.0.0 with the secret in the response, which stays the same when you set the webhook again. An event that fails is retried for a day, with the same webhook-id.',
        tag: 'Webhooks',
        answer: { status: 201, description: 'The webhook as it is now', body: WebhookAnswer },
        errors: [],
      },
      body: SetWebhookRequest,
      foreign: foreignSwitches.webhook,
      async run({ instance, body: { webhook } }) {
        await requireReachable(webhook, outbound);
        return { webhook: await keepWebhook(instance, webhook, { webhooks, answersAsPublic }) };
      },
    }),
    route({
      method: 'get',
      path: '/webhook/find/:instance',
      access: 'instance',
      docs: {
        operationId: 'findWebhook',
        summary: 'Read the webhook of an instance',
        tag: 'Webhooks',
        answer: { status: 200, description: 'The webhook, or null', body: WebhookAnswer.nullable() },
        errors: [],
      },
      async run({ instance }) {
        const webhook = await webhooks.of(instance.id);
        return webhook === undefined ? null : { webhook: { instanceName: instance.name, ...webhook } };
      },
    }),
    route({
      method: 'get',
      path: '/webhook/deliveries/:instance',
      access: 'instance',
      docs: {
        operationId: 'listWebhookDeliveries',
        summary: 'List the deliveries to the instance’s webhook, with every attempt',
        tag: 'Webhooks',
        answer: { status: 200, description: 'The latest deliveries', body: InstanceDeliveries },
        errors: [],
      },
      run: async ({ instance }) => ({ deliveries: await deliveries.list(instance.id) }),
    }),
    route({
      method: 'post',
      path: '/webhook/replay/:instance',
      access: 'instance',
      docs: {
        operationId: 'replayWebhookDelivery',
        summary: 'Send an event again at once, with the same webhook-id',
        description: 'A delivered or failed event starts its schedule again; a pending event continues.',
        tag: 'Webhooks',
        answer: { status: 200, description: 'It is being sent', body: InstanceDeliveries },
        errors: ['delivery_not_found'],
      },
      body: ReplayRequest,
      async run({ instance, body: { deliveryId } }) {
        if (!(await deliveries.replay(instance.id, deliveryId))) {
          throw new GatewayError('delivery_not_found', 'deliveryId: no such delivery, or it has expired');
        }
        return { deliveries: await deliveries.list(instance.id) };
      },
    }),
  ];
}

type Wanted = z.output<typeof SetWebhookRequest>['webhook'];

const isByEvents = ({ byEvents, webhookByEvents }: Wanted): boolean => byEvents ?? webhookByEvents ?? false;

/** Of all events. */
const LONGEST_NAME = 'group-participants.update';

/** Throws bad_request. A disabled webhook can have any address. */
export async function requireReachable(wanted: Wanted, outbound: Outbound): Promise<void> {
  const { enabled, url } = wanted;
  try {
    if (enabled ?? true) {
      await outbound.checkUrl(url, 'webhook');
      // The address of an event can be longer than a URL may be.
      if (isByEvents(wanted)) {
        await outbound.checkUrl(addressOf({ url, byEvents: true }, LONGEST_NAME), 'webhook');
      }
    }
  } catch (error) {
    if (error instanceof OutboundRefused) {
      throw new GatewayError('bad_request', `webhook.url: ${error.explained}`, { cause: error });
    }
    throw error;
  }
}

export async function keepWebhook(
  instance: Instance,
  wanted: Wanted,
  { webhooks, answersAsPublic }: Pick<GatewayServices, 'webhooks' | 'answersAsPublic'>,
): Promise<WebhookAnswer['webhook']> {
  const { enabled, url, headers, events } = wanted;
  const kept = await webhooks.set(instance.id, {
    enabled: enabled ?? true,
    url,
    headers: headers ?? {},
    byEvents: isByEvents(wanted),
    base64: wanted.base64 ?? wanted.webhookBase64 ?? false,
    events: eventsWanted(events, answersAsPublic),
  });
  return { instanceName: instance.name, ...kept };
}
