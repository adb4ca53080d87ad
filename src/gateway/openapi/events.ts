/** What webhooks of instances receive, under the name that tools give to webhooks in OpenAPI 3.0. */
import { GatewayEvent, gatewayEventData, gatewayEventNames } from '../../contract/gateway-events.ts';
import { SignedEventHeaders } from '../../contract/request-headers.ts';
import { answerSchema, requestSchema, type SchemaObject } from './schemas.ts';

const summaries: Readonly<Record<(typeof gatewayEventNames)[number], string>> = {
  'messages.upsert': 'A message was sent or has arrived',
  'messages.update': 'A message came further, or its text was changed',
  'connection.update': 'The instance connected or lost its connection',
  call: 'Somebody calls, or a call has ended',
  'group-participants.update': 'Somebody entered or left a group, or changed rank in it',
  'presence.update': 'Somebody writes, records, comes or goes',
};

const DESCRIPTION =
  'Posted to the webhook of the instance, signed by Standard Webhooks 1.0.0, and again until the receiver answers 2xx: at 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h after the event. 410 ends it.';

export function eventPaths(): Readonly<Record<string, SchemaObject>> {
  const headers = Object.entries(SignedEventHeaders.shape).map(([name, schema]) => {
    const { description, ...rest } = requestSchema(schema);
    return { name, in: 'header', required: true, description, schema: rest };
  });
  return Object.fromEntries(
    gatewayEventNames.map((name) => [
      name,
      {
        post: {
          operationId: `event_${name.replaceAll(/\W/g, '_')}`,
          summary: summaries[name],
          description: DESCRIPTION,
          tags: ['Webhooks'],
          security: [],
          parameters: headers,
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: answerSchema(GatewayEvent.extend({ data: gatewayEventData[name] })),
              },
            },
          },
          responses: { '204': { description: 'Taken; any other 2xx says the same' } },
        },
      },
    ]),
  );
}
