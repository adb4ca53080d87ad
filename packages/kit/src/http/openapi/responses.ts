/** An operation's answers: successes, and errors grouped by status. */
import { z } from 'zod';
import type {
  oas31,
  ZodOpenApiContentObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import type { AnswerDocs, Content, ErrorDocs, Examples, OperationDocs, ServerDocs } from './description.ts';

type Reference = oas31.ReferenceObject;

export class Responses<Code extends string> {
  /** Shared error responses of operations with a key, named for example `JobNotFoundOrNotFound`. */
  readonly shared: Record<string, ZodOpenApiResponseObject> = {};
  readonly #server: ServerDocs<Code>;

  constructor(server: ServerDocs<Code>) {
    this.#server = server;
  }

  of(
    { answers, errors }: OperationDocs<Code>,
    isKeyed: boolean,
    headers: readonly string[],
    own?: ErrorDocs<Code>,
  ): ZodOpenApiResponsesObject {
    const { catalogue } = own ?? this.#server.errors;
    // In catalogue order, so that equal sets get equal names.
    const codes = (Object.keys(catalogue) as Code[]).filter((code) => errors.includes(code));
    const byStatus = Map.groupBy(codes, (code) => catalogue[code].httpStatus);
    const statuses = new Set([...Object.keys(answers).map(Number), ...byStatus.keys()]);
    return Object.fromEntries(
      [...statuses]
        .sort((one, other) => one - other)
        .map((status) => {
          const failures = byStatus.get(status) ?? [];
          const answer = answers[status];
          return [
            status,
            isKeyed && answer === undefined && own === undefined
              ? this.#refer(failures, headers)
              : this.#describe(answer, failures, headers, own),
          ];
        }),
    );
  }

  #refer(codes: readonly Code[], headers: readonly string[]): Reference {
    const name = codes
      .map((code) =>
        `_${code}`.toLowerCase().replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      )
      .join('Or');
    this.shared[name] ??= this.#describe(undefined, codes, headers);
    return { $ref: `#/components/responses/${name}` };
  }

  #describe(
    answer: AnswerDocs<Code> | undefined,
    errors: readonly Code[],
    headers: readonly string[],
    docs: ErrorDocs<Code> = this.#server.errors,
  ): ZodOpenApiResponseObject {
    const { catalogue, waiting } = docs;
    const codes = [...errors, ...(answer?.failures ?? [])];
    const content = this.#content(answer, codes, docs);
    const common = [...headers, ...(errors.some((code) => waiting.includes(code)) ? ['Retry-After'] : [])];
    return {
      description: [
        ...(answer ? [answer.description, ''] : []),
        ...codes.map((code) => `- \`${code}\`: ${catalogue[code].meaning}`),
      ]
        .join('\n')
        .trim(),
      headers: { ...this.#ownHeaders(answer), ...Object.fromEntries(common.map(referToHeader)) },
      ...(Object.keys(content).length > 0 ? { content } : {}),
    };
  }

  #content(
    answer: AnswerDocs<Code> | undefined,
    codes: readonly Code[],
    errors: ErrorDocs<Code>,
  ): ZodOpenApiContentObject {
    const { examples } = this.#server;
    const content = contentOf(answer?.content ?? {}, examples);
    if (codes.length === 0) {
      return content;
    }
    const success = answer?.content?.['application/json'];
    const failure = errors.schema(codes);
    return {
      ...content,
      'application/json': {
        schema: success instanceof z.ZodType ? z.union([success, failure]) : failure,
        examples: { ...content['application/json']?.examples, ...errorExamples(codes, errors) },
      },
    };
  }

  #ownHeaders(answer: AnswerDocs<Code> | undefined): NonNullable<ZodOpenApiResponseObject['headers']> {
    return Object.fromEntries(
      Object.entries(answer?.headers ?? {}).map(([name, description]) =>
        name in this.#server.headers
          ? referToHeader(name)
          : [name, { description, schema: { type: 'string' } }],
      ),
    );
  }
}

function errorExamples<Code extends string>(
  codes: readonly Code[],
  { catalogue, example }: ErrorDocs<Code>,
): Examples {
  return Object.fromEntries(
    codes.map((code) => [code, { summary: catalogue[code].remedy, value: example(code) }]),
  );
}

function referToHeader(name: string): [string, Reference] {
  return [name, { $ref: `#/components/headers/${name}` }];
}

export function contentOf(
  content: Content,
  examplesOf: (schema: z.ZodType) => Examples | undefined,
): ZodOpenApiContentObject {
  return Object.fromEntries(
    Object.entries(content).map(([mediaType, schema]) => {
      if (schema === 'binary') {
        const isText = mediaType.startsWith('text/');
        return [mediaType, { schema: { type: 'string', ...(isText ? {} : { format: 'binary' }) } }];
      }
      const examples = examplesOf(schema);
      return [mediaType, { schema, ...(examples ? { examples } : {}) }];
    }),
  );
}
