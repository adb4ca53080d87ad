/** The parts of an OpenAPI document that the page reads, as they are in the documents that we make. */
import { z } from 'zod';

/** JSON Schema, as far as the page shows it. */
export interface Schema {
  readonly $ref?: string | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly required?: readonly string[] | undefined;
  /** False where unknown fields are refused, as in what callers send. */
  readonly additionalProperties?: unknown;
  readonly items?: Schema | undefined;
  readonly anyOf?: readonly Schema[] | undefined;
  readonly oneOf?: readonly Schema[] | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string | undefined;
  readonly pattern?: string | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
}

const Schema: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: z.string().optional(),
    properties: z.record(z.string(), Schema).optional(),
    required: z.array(z.string()).optional(),
    items: Schema.optional(),
    anyOf: z.array(Schema).optional(),
    oneOf: z.array(Schema).optional(),
    enum: z.array(z.unknown()).optional(),
    format: z.string().optional(),
    pattern: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    exclusiveMinimum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
  }),
);

const Content = z.record(
  z.string(),
  z.object({
    schema: Schema.optional(),
    examples: z
      .record(z.string(), z.object({ summary: z.string().optional(), value: z.unknown() }))
      .optional(),
  }),
);
export type Content = z.infer<typeof Content>;

const Header = z.object({ $ref: z.string().optional(), description: z.string().optional() });

const Response = z.object({
  description: z.string().default(''),
  headers: z.record(z.string(), Header).default({}),
  content: Content.default({}),
});
export type Response = z.infer<typeof Response>;

const Operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  description: z.string().optional(),
  tags: z.array(z.string()),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.enum(['path', 'query', 'header']),
        required: z.boolean().default(false),
        description: z.string().optional(),
        schema: Schema,
      }),
    )
    .default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.union([z.object({ $ref: z.string() }), Response])),
});
export type Operation = z.infer<typeof Operation>;

const methods = ['get', 'post', 'put', 'patch', 'delete', 'head'] as const;
export type Method = (typeof methods)[number];
const PathItem = z
  .partialRecord(z.enum([...methods, 'servers']), z.unknown())
  .transform((item) =>
    methods.flatMap((method) =>
      item[method] === undefined ? [] : [{ method, operation: Operation.parse(item[method]) }],
    ),
  );

const Document = z.object({
  info: z.object({
    title: z.string(),
    version: z.string(),
    summary: z.string().default(''),
    description: z.string(),
  }),
  servers: z.array(z.object({ url: z.string(), description: z.string().optional() })).min(1),
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  paths: z.record(z.string(), PathItem),
  webhooks: z.record(z.string(), PathItem).optional(),
  /** The same for OpenAPI 3.0, which has none. */
  'x-webhooks': z.record(z.string(), PathItem).optional(),
  components: z.object({
    schemas: z.record(z.string(), Schema),
    responses: z.record(z.string(), Response).default({}),
    headers: z.record(z.string(), Header),
    securitySchemes: z.object({ apiKey: z.object({ name: z.string() }) }),
  }),
});

export const DocumentParts = Document.transform(({ 'x-webhooks': events = {}, ...parts }) => ({
  ...parts,
  webhooks: parts.webhooks ?? events,
}));
export type DocumentParts = z.infer<typeof DocumentParts>;

/** The header that carries the key. */
export function keyHeader({ components }: DocumentParts): string {
  return components.securitySchemes.apiKey.name;
}
