/** GET and POST /v1/webhooks/secret: read the secret that webhooks are signed with, or rotate it (decisions D). */
import { WebhookSecret } from '../../contract/answers.ts';
import { sendData } from '../answer.ts';
import { keyOf, type Route } from '../route.ts';

export const webhookSecretRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/webhooks/secret',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'getWebhookSecret',
      summary: 'Read the secret that webhooks are signed with',
      tag: 'Webhooks',
      answers: { 200: { description: 'The current secret', data: WebhookSecret } },
      errors: [],
    },
    async handle(context) {
      const [secret] = await context.services.webhookSecrets.of(keyOf(context).id);
      context.response.set('Cache-Control', 'no-store');
      sendData(context.response, 200, { secret });
    },
  },
  {
    method: 'post',
    path: '/v1/webhooks/secret',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
    docs: {
      operationId: 'rotateWebhookSecret',
      summary: 'Replace the webhook secret by a new one',
      description:
        'For 24 hours every webhook carries a signature by the old secret as well. Up to five old secrets sign at a time: a further replacement is answered 429 until the oldest has ended.',
      tag: 'Webhooks',
      answers: { 200: { description: 'The new secret', data: WebhookSecret } },
      errors: [],
    },
    async handle(context) {
      const secret = await context.services.webhookSecrets.rotate(keyOf(context).id);
      context.response.set('Cache-Control', 'no-store');
      sendData(context.response, 200, { secret });
    },
  },
];
