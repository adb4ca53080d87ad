/** What a route may answer: its successes, and the errors of the catalogue grouped by the status that carries them. */
import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import type {
  ZodOpenApiContentObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { ErrorBody, type ErrorCode, errorCatalogue } from '../../contract/errors.ts';
import type { Access, AnswerDocs, RouteDocs } from '../route.ts';
import { commonHeaders } from './components.ts';
import { dataExamples, type Examples } from './examples.ts';

/** What any request with a key may meet. */
const errorsOfKeys: readonly ErrorCode[] = ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED'];
/** What any request may meet. */
const errorsOfAll: readonly ErrorCode[] = ['INTERNAL_ERROR', 'SERVICE_UNAVAILABLE'];

export function responsesOf(access: Access, docs: RouteDocs): ZodOpenApiResponsesObject {
  const keyed = access.by !== 'public';
  const codes = new Set([
    ...docs.errors,
    ...(keyed ? errorsOfKeys : []),
    ...(docs.tag === 'Service' ? [] : errorsOfAll),
  ]);
  const byStatus = Map.groupBy(codes, (code) => errorCatalogue[code].httpStatus);
  const statuses = new Set([...Object.keys(docs.answers).map(Number), ...byStatus.keys()]);
  return Object.fromEntries(
    [...statuses]
      .sort((one, other) => one - other)
      .map((status) => [status, responseOf(keyed, docs.answers[status], byStatus.get(status) ?? [])]),
  );
}

function responseOf(
  keyed: boolean,
  answer: AnswerDocs | undefined,
  errors: readonly ErrorCode[],
): ZodOpenApiResponseObject {
  const codes = [...errors, ...(answer?.failures ?? [])];
  const description = [
    ...(answer ? [answer.description] : []),
    ...errors.map((code) => `${code}: ${errorCatalogue[code].meaning}`),
  ].join('\n\n');
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
    const examples = schema === 'binary' ? undefined : dataExamples(schema);
    content[mediaType] = {
      schema: schema === 'binary' ? { type: 'string', format: 'binary' } : schema,
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
  const examples = answer?.data ? dataExamples(answer.data) : undefined;
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
  const waits = errors.some((code) =>
    ['RATE_LIMITED', 'QUEUE_FULL', 'SERVICE_UNAVAILABLE', 'JOB_NOT_COMPLETED'].includes(code),
  );
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
