/** The gateway's OpenAPI document: everything beside the routes and the contract's schemas. */
import { STATUS_CODES } from 'soundpost-base/node-http';
import { AudioMessage, DOCUMENTED_TYPE, MessageContent, SentMessage } from 'soundpost-contract/gateway';
import {
  GatewayErrorAnswer,
  type GatewayErrorCode,
  gatewayErrorCatalogue,
} from 'soundpost-contract/gateway-errors';
import { GatewayEvent, gatewayEventData, gatewayEventNames } from 'soundpost-contract/gateway-events';
import {
  ConnectionState,
  ConnectionStateAnswer,
  InstanceAnswer,
  InstanceGoneAnswer,
  InstanceSettingsAnswer,
  PairingAnswer,
  SetSettingsAnswer,
} from 'soundpost-contract/gateway-instances';
import {
  ChatRecord,
  ContactRecord,
  InviteCodeAnswer,
  MessageRecordAnswer,
  ParticipantsAnswer,
  PrivacySettings,
} from 'soundpost-contract/gateway-operations';
import { MakeInstanceAnswer, WebhookAnswer } from 'soundpost-contract/gateway-webhooks';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { SignedEventHeaders } from 'soundpost-contract/request-headers';
import { errorTable } from 'soundpost-kit/http/api-reference';
import type { ErrorDocs, EventDocs, Operation, ServerDocs } from 'soundpost-kit/http/openapi/description';
import { assemble } from 'soundpost-kit/http/openapi/document';
import { z } from 'zod';
import type { Route } from '../route.ts';
import { examplesOf } from './examples.ts';
import { publicOperations } from './public-operations.ts';

const DESCRIPTION = `The gateway sends voice messages to chats and manages contacts, groups, presence and settings.

An instance is one account on one network: the gateway's own loopback network, XMPP, Telegram or WhatsApp. If a network cannot do something, you get 501 \`unsupported\`.

The status of a message only moves forward: PENDING, SERVER_ACK, DELIVERY_ACK, READ, PLAYED; or it ends with ERROR. Write numbers with their country code, or as a JID. Unknown fields are ignored.

Every error has one shape: \`status\`, \`error\`, \`code\`, \`requestId\`, and \`response.message\` with one sentence for each problem.

${errorTable(gatewayErrorCatalogue)}`;

const TAGS = [
  { name: 'Messages', description: 'Send and convert audio, and send texts.' },
  { name: 'Chats', description: 'Contacts, chats, presence and edits.' },
  { name: 'Groups', description: 'Members and invitations.' },
  { name: 'Settings', description: 'Settings of an instance, and privacy settings of its account.' },
  { name: 'Instances', description: 'Create, connect, list and delete accounts.' },
  { name: 'Webhooks', description: 'Receive the events of an instance.' },
  { name: 'Service', description: 'The gateway itself.' },
];

const eventSchemas = mapped(gatewayEventNames, (name) =>
  GatewayEvent.extend({ data: gatewayEventData[name] }),
);

const schemas = {
  MessageKey,
  MessageStatus,
  AudioMessage,
  MessageContent,
  SentMessage,
  MessageRecord: MessageRecordAnswer,
  ConnectionState,
  Instance: InstanceAnswer,
  InstanceSettings: InstanceSettingsAnswer,
  CreatedInstance: MakeInstanceAnswer,
  SettingsSet: SetSettingsAnswer,
  InstanceState: ConnectionStateAnswer,
  Pairing: PairingAnswer,
  InstanceGone: InstanceGoneAnswer,
  Contact: ContactRecord,
  Chat: ChatRecord,
  InviteCode: InviteCodeAnswer,
  Participants: ParticipantsAnswer,
  PrivacySettings,
  Webhook: WebhookAnswer,
  // MessagesUpsertEvent
  ...Object.fromEntries(
    Object.entries(eventSchemas).map(([name, schema]) => [`${pascal(name)}Event`, schema]),
  ),
};

const pathParameters = {
  instance: z.string().meta({ description: 'Name or id of the instance', example: 'main' }),
  file: z
    .string()
    .regex(/^[0-9a-f]{32}\.enc$/)
    .meta({
      description: 'The last part of `directPath`',
      example: '5f0c2a9be41d47839c4e2b7d1a6f0e35.enc',
    }),
};

const headers: ServerDocs<GatewayErrorCode>['headers'] = {
  'X-Request-Id': {
    description: 'Names this request in the log of the gateway',
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': {
    description: 'Seconds to wait before a retry',
    schema: { type: 'integer', minimum: 1 },
  },
  'Idempotent-Replayed': {
    description: 'true for an answer that was given before',
    schema: { type: 'string', enum: ['true'] },
  },
};

const summaries: Readonly<Record<(typeof gatewayEventNames)[number], string>> = {
  'messages.upsert': 'A message was sent or has arrived',
  'messages.update': 'The status or the text of a message changed',
  'connection.update': 'The instance connected or lost its connection',
  call: 'Somebody calls, or a call has ended',
  'group-participants.update': 'Somebody joined or left a group, or changed rank in it',
  'presence.update': 'Somebody is typing, recording, online or offline',
  'send.message': 'The gateway sent a message',
  'qrcode.updated': 'There is a new pairing code for the instance, or the last one has expired',
};

const EVENT_DESCRIPTION =
  'Posted to the webhook of the instance, signed by Standard Webhooks 1.0.0. Until the receiver answers 2xx, it is retried 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h after the event. 410 ends it.';

const events = mapped(
  gatewayEventNames,
  (name): EventDocs => ({
    operationId: `event_${name.replaceAll(/\W/g, '_')}`,
    summary: summaries[name],
    description: EVENT_DESCRIPTION,
    schema: eventSchemas[name],
    answers: { '204': { description: 'Received; any other 2xx means the same' } },
  }),
);

const errors: ErrorDocs<GatewayErrorCode> = {
  catalogue: gatewayErrorCatalogue,
  waiting: ['rate_limited', 'service_unavailable', 'standby', 'idempotency_in_progress'],
  schema: (codes) => GatewayErrorAnswer.extend({ code: z.enum(codes) }),
  example: (code) => {
    const { httpStatus, meaning } = gatewayErrorCatalogue[code];
    return {
      status: httpStatus,
      error: STATUS_CODES[httpStatus] ?? '',
      code,
      requestId: '5f0c2a9b-e41d-4783-9c4e-2b7d1a6f0e35',
      response: { message: [meaning] },
    } satisfies GatewayErrorAnswer;
  },
};

/** @param publicUrl absolute base URL without trailing slash */
export function openApiDocument(
  routes: readonly Route[],
  publicUrl: string,
): ReturnType<typeof assemble<GatewayErrorCode>> {
  return assemble({
    // The version in which the interface is described.
    openapi: '3.0.3',
    info: {
      title: 'Soundpost messaging gateway',
      version: '2.3.0',
      description: DESCRIPTION,
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
    },
    servers: [{ url: publicUrl }],
    tags: TAGS,
    operations: [...routes.map(operationOf), ...publicOperations],
    errors,
    events,
    eventHeaders: SignedEventHeaders,
    schemas,
    examples: examplesOf,
    pathParameters,
    headers,
    securitySchemes: {
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'apikey',
        description:
          'The gateway’s key, which gives full access, or an instance’s token, which gives access to that instance',
      },
    },
    override: ({ jsonSchema }) => {
      const documented = jsonSchema[DOCUMENTED_TYPE];
      delete jsonSchema[DOCUMENTED_TYPE];
      if (documented !== undefined) {
        const { items } = jsonSchema.anyOf?.find(({ type }) => type === documented) ?? {};
        delete jsonSchema.anyOf;
        Object.assign(jsonSchema, { type: documented, ...(items ? { items } : {}) });
      }
    },
  });
}

function operationOf({ method, path, docs, query, headers, body, form }: Route): Operation<GatewayErrorCode> {
  const { answer, errors, ...about } = docs;
  const isNamed = path.endsWith('/:instance');
  return {
    method,
    path,
    docs: {
      ...about,
      query,
      headers,
      body: (body || form) && {
        ...(body ? { 'application/json': body } : {}),
        ...(form ? { 'multipart/form-data': form } : {}),
      },
      answers: {
        [answer.status]: {
          description: answer.description,
          content: answer.body && { 'application/json': answer.body },
          headers: headers ? { 'Idempotent-Replayed': '' } : {},
        },
      },
      errors: [
        ...errors,
        // Errors of any request with a key.
        ...(['unauthorized', 'rate_limited', 'internal_error', 'service_unavailable', 'standby'] as const),
        ...(body || form ? (['bad_request', 'payload_too_large', 'unsupported_media_type'] as const) : []),
        ...(query ? (['bad_request'] as const) : []),
        ...(isNamed ? (['instance_not_found'] as const) : []),
      ],
    },
    security: [{ apiKey: [] }],
    answerHeaders: ['X-Request-Id'],
  };
}

/** `messages.upsert` as `MessagesUpsert` */
function pascal(name: string): string {
  return `.${name}`.replaceAll(/\W(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function mapped<Name extends string, Value>(
  names: readonly Name[],
  toValue: (name: Name) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, toValue(name)])) as Record<Name, Value>;
}
