/** What an operation may answer: its success, and the errors of the catalogue grouped by the status that carries them. */
import { STATUS_CODES } from 'node:http';
import { type GatewayErrorCode, gatewayErrorCatalogue } from '../../contract/gateway-errors.ts';
import type { Route } from '../route.ts';
import { exampleAnswers } from './examples.ts';
import { answerSchema, type SchemaObject } from './schemas.ts';

/** What any request with a key may meet. */
const errorsOfKeys: readonly GatewayErrorCode[] = [
  'unauthorized',
  'rate_limited',
  'internal_error',
  'service_unavailable',
  'standby',
];
const errorsOfBodies: readonly GatewayErrorCode[] = [
  'bad_request',
  'payload_too_large',
  'unsupported_media_type',
];
/** Whose answers say when to come back. */
const errorsWithWait: readonly GatewayErrorCode[] = [
  'rate_limited',
  'service_unavailable',
  'standby',
  'idempotency_in_progress',
];

export const commonHeaders = {
  'X-Request-Id': {
    description: 'Names this request in the log of the gateway',
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': {
    description: 'Seconds after which trying again pays',
    schema: { type: 'integer', minimum: 1 },
  },
  'Idempotent-Replayed': {
    description: 'true for an answer that was given before',
    schema: { type: 'string', enum: ['true'] },
  },
} as const;

export function responsesOf(route: Route): Readonly<Record<string, SchemaObject>> {
  const { status } = route.docs.answer;
  const byStatus = Map.groupBy(errorsOf(route), (code): number => gatewayErrorCatalogue[code].httpStatus);
  return Object.fromEntries([
    [String(status), successOf(route)],
    ...[...byStatus]
      .toSorted(([one], [other]) => one - other)
      .map(([httpStatus, codes]) => [
        String(httpStatus),
        { $ref: `#/components/responses/${responseName(codes)}` },
      ]),
  ]);
}

/** What the operations' failures refer to. */
export function sharedResponses(routes: readonly Route[]): Readonly<Record<string, SchemaObject>> {
  const responses: Record<string, SchemaObject> = {};
  for (const route of routes) {
    const byStatus = Map.groupBy(errorsOf(route), (code): number => gatewayErrorCatalogue[code].httpStatus);
    for (const [httpStatus, codes] of byStatus) {
      responses[responseName(codes)] ??= failureOf(httpStatus, codes);
    }
  }
  return responses;
}

/** `BadRequestOrUnknownRecipient` */
function responseName(codes: readonly GatewayErrorCode[]): string {
  return codes
    .map((code) => `_${code}`.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()))
    .join('Or');
}

function errorsOf({ path, body, query, docs }: Route): ReadonlySet<GatewayErrorCode> {
  const all = new Set<GatewayErrorCode>([
    ...docs.errors,
    ...errorsOfKeys,
    ...(body ? errorsOfBodies : []),
    ...(query ? (['bad_request'] as const) : []),
    ...(path.endsWith('/:instance') ? (['instance_not_found'] as const) : []),
  ]);
  // In the order of the catalogue, so that equal sets have equal names.
  return new Set((Object.keys(gatewayErrorCatalogue) as GatewayErrorCode[]).filter((code) => all.has(code)));
}

function successOf({ docs, headers }: Route): SchemaObject {
  const { description, body } = docs.answer;
  const examples = exampleAnswers[docs.operationId];
  return {
    description,
    headers: {
      'X-Request-Id': refer('X-Request-Id'),
      ...(headers ? { 'Idempotent-Replayed': refer('Idempotent-Replayed') } : {}),
    },
    ...(body
      ? {
          content: {
            'application/json': {
              schema: answerSchema(body),
              ...(examples === undefined
                ? {}
                : { examples: { usual: { summary: 'Usual', value: examples } } }),
            },
          },
        }
      : {}),
  };
}

function failureOf(httpStatus: number, codes: readonly GatewayErrorCode[]): SchemaObject {
  const waits = codes.some((code) => errorsWithWait.includes(code));
  return {
    description: codes.map((code) => `- \`${code}\`: ${gatewayErrorCatalogue[code].meaning}`).join('\n'),
    headers: {
      'X-Request-Id': refer('X-Request-Id'),
      ...(waits ? { 'Retry-After': refer('Retry-After') } : {}),
    },
    content: {
      'application/json': { schema: errorSchema(codes), examples: errorExamples(httpStatus, codes) },
    },
  };
}

function errorSchema(codes: readonly GatewayErrorCode[]): SchemaObject {
  return {
    type: 'object',
    properties: {
      status: { type: 'integer', description: 'The HTTP status' },
      error: { type: 'string', description: 'Its reason phrase' },
      code: { type: 'string', enum: codes },
      requestId: { type: 'string', format: 'uuid' },
      response: {
        type: 'object',
        properties: {
          message: {
            type: 'array',
            minItems: 1,
            items: { type: 'string' },
            description: 'One sentence a fault, naming the field',
          },
        },
        required: ['message'],
      },
    },
    required: ['status', 'error', 'code', 'requestId', 'response'],
  };
}

function errorExamples(httpStatus: number, codes: readonly GatewayErrorCode[]): SchemaObject {
  return Object.fromEntries(
    codes.map((code) => [
      code,
      {
        summary: gatewayErrorCatalogue[code].remedy,
        value: {
          status: httpStatus,
          error: STATUS_CODES[httpStatus] ?? '',
          code,
          requestId: '5f0c2a9b-e41d-4783-9c4e-2b7d1a6f0e35',
          response: { message: [gatewayErrorCatalogue[code].meaning] },
        },
      },
    ]),
  );
}

function refer(header: keyof typeof commonHeaders): SchemaObject {
  return { $ref: `#/components/headers/${header}` };
}
