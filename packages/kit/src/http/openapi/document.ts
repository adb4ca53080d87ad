/**
 * A server's OpenAPI document, made from its operations, its validation schemas and its error
 * catalogue (docs/decisions/0005-openapi-from-zod.md).
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

/** Suffix of an answer's schema if a request's schema has the same name. */
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
  // Tools use this name, since OpenAPI 3.0 has no webhooks.
  const whole = { ...document, [is30 ? 'x-webhooks' : 'webhooks']: webhooks } as OpenApiDocument;
  return withPlainNames(withoutUnused(is30 ? (typedNulls(whole) as OpenApiDocument) : whole));
}

function operationObject<Code extends string>(
  { path, docs, security, answerHeaders, errors }: Operation<Code>,
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
    responses: responses.of(docs, security.length > 0, answerHeaders, errors),
  };
}

/** A body without required fields may be left out. */
function isRequired({ 'application/json': json }: Content): boolean {
  return json === undefined || json === 'binary' || !json.safeParse({}).success;
}

/** The server sends these bodies, so they refer to the schema's output, as answers do. */
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

/** Adapts zod's JSON Schema to OpenAPI. */
function adjust({ jsonSchema, io }: Parameters<ZodOpenApiOverride>[0], is30: boolean): void {
  // Answers may gain fields; clients must accept them.
  if (io === 'output' && jsonSchema.additionalProperties === false) {
    delete jsonSchema.additionalProperties;
  }
  // 3.1 knows only JSON Schema's `examples`.
  if (!is30 && 'example' in jsonSchema) {
    jsonSchema.examples = [jsonSchema.example];
    delete jsonSchema.example;
  }
  // `binary` is no text encoding.
  if (jsonSchema.contentEncoding === 'binary') {
    delete jsonSchema.contentEncoding;
  }
  // zod repeats a format as a long pattern, and adds the safe integer range where none is set.
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

/** OpenAPI 3.0.3 allows `nullable` only beside a type: references are objects, choices have one. */
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
    const [only, ...more] = Array.isArray(allOf) ? allOf : [];
    return only !== undefined && more.length === 0 && Object.keys(others).length === 0 ? only : inner;
  }
  if (Array.isArray(anyOf)) {
    return { ...others, anyOf: anyOf.map((choice: object) => ({ ...choice, nullable })) };
  }
  if (Array.isArray(allOf)) {
    return { ...others, anyOf: [...allOf, { type: 'object', nullable, enum: [null] }] };
  }
  // An enum has to list null as well.
  return Array.isArray(inner.enum) ? { ...inner, enum: [...inner.enum, null] } : inner;
}

/** Removes schemas without references. */
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

/** zod-openapi reserves the request name for any schema that another named schema refers to. */
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
