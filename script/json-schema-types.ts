/** TypeScript for the JSON Schema that zod writes of our contract. What it does not know it refuses, so that no type is wider than its schema. */
import { z } from 'zod';

/** What says nothing about the type: limits, which only the service checks, and what is said elsewhere. */
const BESIDE = [
  ...[
    'description',
    'default',
    'example',
    'examples',
    'format',
    'pattern',
    'discriminator',
    'contentEncoding',
  ],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'propertyNames', 'contentMediaType'],
] as const;

interface JsonSchema {
  readonly $ref?: string | undefined;
  readonly type?: string | string[] | undefined;
  readonly const?: z.core.util.JSONType | undefined;
  readonly enum?: z.core.util.JSONType[] | undefined;
  readonly anyOf?: JsonSchema[] | undefined;
  readonly oneOf?: JsonSchema[] | undefined;
  readonly items?: JsonSchema | undefined;
  readonly properties?: Record<string, JsonSchema> | undefined;
  readonly additionalProperties?: boolean | JsonSchema | undefined;
  readonly required?: string[] | undefined;
  readonly description?: string | undefined;
  readonly default?: z.core.util.JSONType | undefined;
}

const JsonSchema: z.ZodType<JsonSchema> = z.lazy(() =>
  z.strictObject({
    ...Object.fromEntries(BESIDE.map((keyword) => [keyword, z.unknown().optional()])),
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    const: z.json().optional(),
    enum: z.array(z.json()).optional(),
    anyOf: z.array(JsonSchema).optional(),
    oneOf: z.array(JsonSchema).optional(),
    // Patterns, where there is more than one.
    allOf: z.array(z.strictObject({ pattern: z.string() })).optional(),
    items: JsonSchema.optional(),
    properties: z.record(z.string(), JsonSchema).optional(),
    additionalProperties: z.union([z.boolean(), JsonSchema]).optional(),
    required: z.array(z.string()).optional(),
    description: z.string().optional(),
    default: z.json().optional(),
  }),
);

/** An exported declaration, with the schema's description. */
export function declaration(name: string, given: unknown): string {
  const schema = JsonSchema.parse(given);
  const { type, properties } = schema;
  return type === 'object' && properties !== undefined
    ? `${comment(schema, '')}export interface ${name} ${typeOf(schema)}\n`
    : `${comment(schema, '')}export type ${name} = ${typeOf(schema)};\n`;
}

/** The name of what a schema refers to; undefined where it is written out. */
export function referred(given: unknown): string | undefined {
  const { $ref } = z.looseObject({ $ref: z.string().optional() }).parse(given);
  return $ref === undefined ? undefined : nameIn($ref);
}

function nameIn($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1);
}

function typeOf(schema: JsonSchema, indent = ''): string {
  const { $ref, type, anyOf, oneOf } = schema;
  if ($ref !== undefined) return nameIn($ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const choices = anyOf ?? oneOf;
  if (choices !== undefined) return choices.map((choice) => typeOf(choice, indent)).join(' | ');
  if (type === undefined) return 'unknown';
  return [type]
    .flat()
    .map((one) => typeNamed(one, schema, indent))
    .join(' | ');
}

function typeNamed(type: string, schema: JsonSchema, indent: string): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
    case 'number':
      return type;
    case 'integer':
      return 'number';
    case 'array': {
      const item = typeOf(schema.items ?? {}, indent);
      return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
    }
    case 'object':
      return objectType(schema, indent);
    default:
      throw new Error(`there is no TypeScript here for the type ${type}`);
  }
}

function objectType(
  { properties = {}, required = [], additionalProperties }: JsonSchema,
  indent: string,
): string {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, field]) => {
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    const type = typeOf(field, inner);
    const isRequired = required.includes(name);
    return `${comment(field, inner)}${inner}${key}${isRequired ? `: ${type}` : `?: ${type} | undefined`};\n`;
  });
  if (typeof additionalProperties === 'object') {
    fields.push(`${inner}[name: string]: ${typeOf(additionalProperties, inner)};\n`);
  }
  return `{\n${fields.join('')}${indent}}`;
}

function comment({ description, default: usual }: JsonSchema, indent: string): string {
  const isSaid = usual === undefined || (typeof usual === 'object' && usual !== null);
  const lines = [
    ...(description === undefined ? [] : [description.replaceAll('*/', '*\\/')]),
    ...(isSaid ? [] : [`@default ${JSON.stringify(usual)}`]),
  ];
  if (lines.length === 0) return '';
  return lines.length === 1
    ? `${indent}/** ${lines[0]} */\n`
    : `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
}
