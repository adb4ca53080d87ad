/** GET and POST /v1/webhooks/secret: read the secret that webhooks are signed with, or rotate it (decisions D). */
import { sendData } from '../answer.ts';
import { keyOf, type Route } from '../route.ts';

export const webhookSecretRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/webhooks/secret',
    access: { by: 'key', scope: 'webhooks', rate: 'read' },
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
    async handle(context) {
      const secret = await context.services.webhookSecrets.rotate(keyOf(context).id);
      context.response.set('Cache-Control', 'no-store');
      sendData(context.response, 200, { secret });
    },
  },
];
