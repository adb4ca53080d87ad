/** What the service sends to the webhooks of its callers (decisions D). */
import type { z } from 'zod';
import type { ZodOpenApiObject } from 'zod-openapi';
import { SignedEventHeaders } from '../../contract/request-headers.ts';
import {
  JobCompletedEvent,
  JobFailedEvent,
  VoiceUpdatedEvent,
  WebhookTestEvent,
} from '../../contract/webhook-events.ts';
import type { namedSchemas } from './components.ts';
import { examplesOf } from './examples.ts';

export const webhooks: NonNullable<ZodOpenApiObject['webhooks']> = {
  'job.completed': told('jobCompleted', 'A job has completed', 'JobCompletedEvent', JobCompletedEvent),
  'job.failed': told('jobFailed', 'A job has failed or was cancelled', 'JobFailedEvent', JobFailedEvent),
  'voice.updated': told(
    'voiceUpdated',
    'A voice message became sent, failed or unknown',
    'VoiceUpdatedEvent',
    VoiceUpdatedEvent,
  ),
  'webhook.test': told(
    'webhookTest',
    'Somebody asked whether this webhook works',
    'WebhookTestEvent',
    WebhookTestEvent,
  ),
};

/** The body is ours, so it is described as answers are: by what a schema puts out. Hence the reference, not the schema. */
function told(operationId: string, summary: string, name: keyof typeof namedSchemas, schema: z.ZodType) {
  const examples = examplesOf(schema);
  return {
    post: {
      operationId,
      summary,
      description:
        'Signed by Standard Webhooks 1.0.0 with the secret of the key. Anything but 2xx within 15 seconds is tried again; 410 ends the tries.',
      tags: ['Webhooks'],
      security: [],
      requestParams: { header: SignedEventHeaders },
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { $ref: `#/components/schemas/${name}` } as const,
            ...(examples ? { examples } : {}),
          },
        },
      },
      responses: { '2XX': { description: 'Taken' } },
    },
  };
}
