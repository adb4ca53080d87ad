/** What a route may answer: its successes, and the errors of the catalogue grouped by the status that carries them. */
import { z } from 'zod';
import type {
  oas31,
  ZodOpenApiContentObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { ErrorBody, ErrorCode, errorCatalogue } from '../../contract/errors.ts';
import type { Access, AnswerDocs, RouteDocs } from '../route.ts';
import { commonHeaders } from './components.ts';
import { type Examples, examplesOf } from './examples.ts';

/** What any request with a key may meet besides what its route names. */
const errorsOfKeys = ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'SERVICE_UNAVAILABLE'] as const;

/** Whose answers say when to come back. */
const errorsWithWait: readonly ErrorCode[] = [
  'RATE_LIMITED',
  'QUEUE_FULL',
  'SERVICE_UNAVAILABLE',
  'JOB_NOT_COMPLETED',
];

export function responsesOf(access: Access, docs: RouteDocs): ZodOpenApiResponsesObject {
  const keyed = access.by !== 'public';
  const codes = new Set<ErrorCode>([...docs.errors, ...(keyed ? errorsOfKeys : []), 'INTERNAL_ERROR']);
  const byStatus = Map.groupBy(codes, (code): number => errorCatalogue[code].httpStatus);
  const statuses = new Set([...Object.keys(docs.answers).map(Number), ...byStatus.keys()]);
  return Object.fromEntries(
    [...statuses]
      .sort((one, other) => one - other)
      .map((status) => [status, responseOf(keyed, docs.answers[status], byStatus.get(status) ?? [])]),
  );
}

/** An error that alone has a status on some route with a key, by a name such as JobNotFound. */
export const sharedResponses: Readonly<Record<string, ZodOpenApiResponseObject>> = Object.fromEntries(
  ErrorCode.options.map((code) => [componentName(code), describeResponse(true, undefined, [code])]),
);

function componentName(code: ErrorCode): string {
  return code.toLowerCase().replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function responseOf(
  keyed: boolean,
  answer: AnswerDocs | undefined,
  errors: readonly ErrorCode[],
): ZodOpenApiResponseObject | oas31.ReferenceObject {
  const [code, ...others] = errors;
  return keyed && answer === undefined && code !== undefined && others.length === 0
    ? { $ref: `#/components/responses/${componentName(code)}` }
    : describeResponse(keyed, answer, errors);
}

function describeResponse(
  keyed: boolean,
  answer: AnswerDocs | undefined,
  errors: readonly ErrorCode[],
): ZodOpenApiResponseObject {
  const codes = [...errors, ...(answer?.failures ?? [])];
  const description = [
    ...(answer ? [answer.description, ''] : []),
    ...codes.map((code) => `- \`${code}\`: ${errorCatalogue[code].meaning}`),
  ]
    .join('\n')
    .trim();
  const content = contentOf(answer, codes);
  return {
    description,
    headers: headersOf(keyed, answer, errors),
    ...(Object.keys(content).length > 0 ? { content } : {}),
  };
}

function contentOf(answer: AnswerDocs | undefined, codes: readonly ErrorCode[]): ZodOpenApiContentObject {
  const content: ZodOpenApiContentObject = {};
  for (const [mediaType, schema] of Object.entries(answer?.content ?? {})) {
    const examples = schema === 'binary' ? undefined : examplesOf(schema);
    content[mediaType] = {
      schema: schema === 'binary' ? bytesOf(mediaType) : schema,
      ...(examples ? { examples } : {}),
    };
  }
  const envelopes = [
    ...(answer?.data ? [successEnvelope(answer.data)] : []),
    ...(codes.length > 0 ? [errorEnvelope(codes)] : []),
  ];
  const [envelope, ...others] = envelopes;
  if (envelope !== undefined) {
    content['application/json'] = {
      schema: others.length > 0 ? z.union(envelopes) : envelope,
      examples: { ...successExamples(answer), ...errorExamples(codes) },
    };
  }
  return content;
}

function bytesOf(mediaType: string): { type: 'string'; format?: 'binary' } {
  return mediaType.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' };
}

function successEnvelope(data: z.ZodType): z.ZodObject {
  return z.object({
    success: z.literal(true),
    data,
    message: z
      .string()
      .optional()
      .meta({ description: 'For people; a batch says how many jobs were queued' }),
  });
}

function errorEnvelope(codes: readonly ErrorCode[]): z.ZodObject {
  return z.object({ success: z.literal(false), error: ErrorBody.extend({ code: z.enum(codes) }) });
}

function successExamples(answer: AnswerDocs | undefined): Examples {
  const examples = answer?.data ? examplesOf(answer.data) : undefined;
  return Object.fromEntries(
    Object.entries(examples ?? {}).map(([name, { value, ...about }]) => [
      name,
      { ...about, value: { success: true, data: value } },
    ]),
  );
}

function errorExamples(codes: readonly ErrorCode[]): Examples {
  return Object.fromEntries(
    codes.map((code) => {
      const { meaning, remedy } = errorCatalogue[code];
      return [code, { summary: remedy, value: { success: false, error: { code, message: meaning } } }];
    }),
  );
}

function headersOf(
  keyed: boolean,
  answer: AnswerDocs | undefined,
  errors: readonly ErrorCode[],
): NonNullable<ZodOpenApiResponseObject['headers']> {
  const own = Object.entries(answer?.headers ?? {}).map(([name, description]) => [
    name,
    name in commonHeaders ? refer(name) : { description, schema: { type: 'string' } },
  ]);
  const waits = errors.some((code) => errorsWithWait.includes(code));
  const common = [
    'X-Request-Id',
    ...(keyed ? ['RateLimit-Policy', 'RateLimit'] : []),
    ...(waits ? ['Retry-After'] : []),
  ];
  return Object.fromEntries([...own, ...common.map((name) => [name, refer(name)])]);
}

function refer(header: string): { $ref: `#/components/headers/${string}` } {
  return { $ref: `#/components/headers/${header}` };
}
