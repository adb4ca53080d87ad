/**
 * A server's OpenAPI document, made from its table of operations, the schemas that validate, and its catalogue of errors
 * (docs/decisions/0005-openapi-from-zod.md).
 */
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import type { Content, Operation, ServerDocs } from './description.ts';
import { contentOf, Responses } from './responses.ts';

/** Ends the name of what an answer holds, where a request calls another thing so. */
const IN_FORCE = 'InForce';

type OpenApiDocument = ReturnType<typeof createDocument>;

export function assemble<Code extends string>(server: ServerDocs<Code>): OpenApiDocument {
  const { openapi, info, servers, tags, operations, schemas, securitySchemes, headers } = server;
  const responses = new Responses(server);
  const paths: ZodOpenApiPathsObject = {};
  for (const operation of operations) {
    // Express's `:jobId` is OpenAPI's `{jobId}`.
    const path = operation.path.replaceAll(/:(\w+)/g, '{$1}');
    const places = server.serversOf?.(path);
    paths[path] = {
      ...paths[path],
      ...(places ? { servers: places } : {}),
      [operation.method]: operationObject(operation, server, responses),
    };
  }
  const is30 = openapi?.startsWith('3.0') ?? false;
  const { webhooks, ...document } = createDocument(
    {
      openapi,
      info,
      ...(servers ? { servers } : {}),
      ...(tags ? { tags } : {}),
      security: [{ apiKey: [] }],
      paths,
      webhooks: webhooksOf(server),
      components: { schemas, responses: responses.shared, securitySchemes, headers },
    },
    {
      outputIdSuffix: IN_FORCE,
      override: (context) => {
        server.override?.(context);
        adjust(context, is30);
      },
    },
  );
  // The name that tools give to webhooks in OpenAPI 3.0, which has none.
  const whole = { ...document, [is30 ? 'x-webhooks' : 'webhooks']: webhooks } as OpenApiDocument;
  return withPlainNames(withoutUnused(is30 ? (typedNulls(whole) as OpenApiDocument) : whole));
}

function operationObject<Code extends string>(
  { path, docs, security, answerHeaders }: Operation<Code>,
  { pathParameters, examples }: ServerDocs<Code>,
  responses: Responses<Code>,
): ZodOpenApiOperationObject {
  const { operationId, summary, description, tag, query, headers, body } = docs;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const schema = pathParameters[name];
    if (schema === undefined) {
      throw new Error(`${operationId}: say in pathParameters what :${name} may be`);
    }
    return [name, schema];
  });
  const requestParams = {
    ...(inPath.length > 0 ? { path: z.object(Object.fromEntries(inPath)) } : {}),
    ...(query ? { query } : {}),
    ...(headers ? { header: headers } : {}),
  };
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag],
    deprecated: false,
    security: [...security],
    ...(Object.keys(requestParams).length > 0 ? { requestParams } : {}),
    ...(body ? { requestBody: { required: isRequired(body), content: contentOf(body, examples) } } : {}),
    responses: responses.of(docs, security.length > 0, answerHeaders),
  };
}

/** A body of which nothing is required may be left out whole. */
function isRequired({ 'application/json': json }: Content): boolean {
  return json === undefined || json === 'binary' || !json.safeParse({}).success;
}

/** The bodies are the server's own, so they are described as answers are, by what a schema puts out: hence the reference, not the schema. */
function webhooksOf<Code extends string>({
  events,
  eventHeaders,
  schemas,
  examples,
}: ServerDocs<Code>): NonNullable<ZodOpenApiObject['webhooks']> {
  const names = new Map(Object.entries(schemas).map(([name, schema]) => [schema, name]));
  return Object.fromEntries(
    Object.entries(events).map(([event, { schema, answers, ...about }]) => {
      const $ref = `#/components/schemas/${names.get(schema)}` as const;
      const { 'application/json': json } = contentOf({ 'application/json': schema }, examples);
      const post: ZodOpenApiOperationObject = {
        ...about,
        tags: ['Webhooks'],
        security: [],
        requestParams: { header: eventHeaders },
        requestBody: { required: true, content: { 'application/json': { ...json, schema: { $ref } } } },
        responses: answers,
      };
      return [event, { post }];
    }),
  );
}

/** Where zod's JSON Schema is not what a reader of an OpenAPI document needs. */
function adjust({ jsonSchema, io }: Parameters<ZodOpenApiOverride>[0], is30: boolean): void {
  // Answers may gain fields; clients must not refuse them.
  if (io === 'output' && jsonSchema.additionalProperties === false) {
    delete jsonSchema.additionalProperties;
  }
  // 3.1 knows only JSON Schema's `examples`.
  if (!is30 && 'example' in jsonSchema) {
    jsonSchema.examples = [jsonSchema.example];
    delete jsonSchema.example;
  }
  // `binary` is no encoding of text.
  if (jsonSchema.contentEncoding === 'binary') {
    delete jsonSchema.contentEncoding;
  }
  // zod repeats a format as a pattern, of 400 characters for dates, and names the range of safe integers where a schema has none of its own.
  if (jsonSchema.format !== undefined) {
    delete jsonSchema.pattern;
  }
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.maximum;
  }
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) {
    delete jsonSchema.minimum;
  }
}

/** OpenAPI 3.0.3 lets only a schema with a type be nullable: a reference is one to an object, a choice has types of its own. */
function typedNulls(part: unknown): unknown {
  if (Array.isArray(part)) {
    return part.map(typedNulls);
  }
  if (typeof part !== 'object' || part === null) {
    return part;
  }
  const inner: Record<string, unknown> = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, typedNulls(value)]),
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

/** Every schema is there to be named; only what something refers to is kept. */
function withoutUnused({ components = {}, ...document }: OpenApiDocument): OpenApiDocument {
  const { schemas = {}, ...others } = components;
  const used = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (!used.has(name)) {
        used.add(name);
        follow(schemas[name]);
      }
    }
  };
  follow([document, others]);
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { schemas: kept, ...others } };
}

/** zod-openapi keeps a name for requests as soon as another named schema refers to it, be it in no request. */
function withPlainNames(document: OpenApiDocument): OpenApiDocument {
  const names = Object.keys(document.components?.schemas ?? {});
  const nameOf = (name: string): string => {
    const plain = name.endsWith(IN_FORCE) ? name.slice(0, -IN_FORCE.length) : name;
    return names.includes(plain) ? name : plain;
  };
  const text = JSON.stringify(document).replaceAll(
    /"#\/components\/schemas\/(\w+)"/g,
    (_, name: string) => `"#/components/schemas/${nameOf(name)}"`,
  );
  const { components = {}, ...others } = JSON.parse(text) as OpenApiDocument;
  const schemas = Object.entries(components.schemas ?? {}).map(([name, schema]) => [nameOf(name), schema]);
  return { ...others, components: { ...components, schemas: Object.fromEntries(schemas) } };
}
