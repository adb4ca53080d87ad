/** The contract's schemas as OpenAPI 3.0 writes them. What has a name here is named once and referred to. */
import { z } from 'zod';
import { AudioMessage, DOCUMENTED_TYPE, MessageContent, SentMessage } from '../../contract/gateway.ts';
import { GatewayEvent } from '../../contract/gateway-events.ts';
import {
  ConnectionState,
  ConnectionStateAnswer,
  InstanceAnswer,
  InstanceGoneAnswer,
  InstanceSettingsAnswer,
  PairingAnswer,
  SetSettingsAnswer,
} from '../../contract/gateway-instances.ts';
import {
  ChatRecord,
  ContactRecord,
  InviteCodeAnswer,
  MessageRecordAnswer,
  ParticipantsAnswer,
  PrivacySettings,
} from '../../contract/gateway-operations.ts';
import { MakeInstanceAnswer, WebhookAnswer } from '../../contract/gateway-webhooks.ts';
import { MessageKey, MessageStatus } from '../../contract/job.ts';

/** A schema of OpenAPI 3.0.3, or a reference to one. */
export type SchemaObject = Readonly<Record<string, unknown>>;

const named = {
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
  Event: GatewayEvent,
} as const satisfies Record<string, z.ZodType>;

/** What a caller may send; stands where it is used. */
export function requestSchema(schema: z.ZodType): SchemaObject {
  return plain(
    z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', unrepresentable: 'any', override }),
  );
}

/** What the gateway answers, with references to what is named. */
export function answerSchema(schema: z.ZodType): SchemaObject {
  return answers({ Anonymous: schema }).Anonymous ?? {};
}

/** The named schemas, for `components`. */
export function namedSchemas(): Readonly<Record<string, SchemaObject>> {
  return answers({});
}

function answers(more: Readonly<Record<string, z.ZodType>>): Readonly<Record<string, SchemaObject>> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries({ ...named, ...more })) {
    // A schema that has a name already is a reference to it.
    if (!registry.has(schema)) {
      registry.add(schema, { id });
    }
  }
  const { schemas } = z.toJSONSchema(registry, {
    target: 'openapi-3.0',
    io: 'output',
    unrepresentable: 'any',
    uri: (id) => `#/components/schemas/${id}`,
    override,
  });
  const known = Object.entries(named).find(([, schema]) => schema === more.Anonymous)?.[0];
  return {
    ...Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, plain(schema)])),
    ...(known === undefined ? {} : { Anonymous: { $ref: `#/components/schemas/${known}` } }),
  };
}

/** Where zod's JSON Schema is not what a reader of the document needs. */
const override: NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override'] = ({ jsonSchema }) => {
  const documented = jsonSchema[DOCUMENTED_TYPE];
  delete jsonSchema[DOCUMENTED_TYPE];
  if (documented !== undefined) {
    delete jsonSchema.anyOf;
    jsonSchema.type = documented as 'string';
  }
  // Requests may hold more than is looked at, and answers may gain fields.
  if (jsonSchema.additionalProperties === false) {
    delete jsonSchema.additionalProperties;
  }
  // zod names the range of safe integers where a schema has none of its own, and repeats a format as a pattern.
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.maximum;
  }
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) {
    delete jsonSchema.minimum;
  }
  if (jsonSchema.format !== undefined) {
    delete jsonSchema.pattern;
  }
};

/** Without the words that belong to JSON Schema documents of their own. */
function plain({ $schema, $id, '~standard': _standard, ...schema }: Record<string, unknown>): SchemaObject {
  return typed(schema) as SchemaObject;
}

/** OpenAPI 3.0.3 lets only a schema with a type be nullable: a reference is one to an object, a choice has types of its own. */
function typed(part: unknown): unknown {
  if (Array.isArray(part)) {
    return part.map(typed);
  }
  if (typeof part !== 'object' || part === null) {
    return part;
  }
  const inner: Record<string, unknown> = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, typed(value)]),
  );
  const { nullable, anyOf, allOf, ...others } = inner;
  if (nullable !== true) {
    return inner;
  }
  if (Array.isArray(anyOf)) {
    return { ...others, anyOf: anyOf.map((choice: object) => ({ ...choice, nullable })) };
  }
  if (Array.isArray(allOf)) {
    return { ...others, anyOf: [...allOf, { type: 'object', nullable, enum: [null] }] };
  }
  // A list of values has to name null as well.
  return Array.isArray(inner.enum) ? { ...inner, enum: [...inner.enum, null] } : inner;
}
