/** The gateway's operations with their fields, read out of its OpenAPI document. */
import { code, markdownTable } from './markdown-table.ts';
import { documents } from './openapi-documents.ts';

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
}

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** A section for each tag, and in it each operation with a table of what a caller may send. */
export function gatewayReference(): string {
  const { paths, tags } = documents.gateway as unknown as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly tags: readonly { readonly name: string; readonly description: string }[];
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => ({ name: `${method.toUpperCase()} ${path}`, about })),
  );
  return tags
    .flatMap(({ name: tag, description }) => [
      `## ${tag}`,
      description,
      ...operations
        .filter(({ about }) => about.tags.includes(tag))
        .flatMap(({ name, about }) => [
          `### ${code(name)}`,
          [`${about.summary}.`, about.description ?? ''].join(' ').trim(),
          ...fieldsOf(about),
        ]),
    ])
    .join('\n\n');
}

function fieldsOf({ parameters = [], requestBody }: Operation): string[] {
  const rows = new Map<string, string[]>();
  for (const { name, in: place, description = '' } of parameters) {
    if (place !== 'path') rows.set(name, [code(name), place, '', description]);
  }
  const bodies = Object.values(requestBody?.content ?? {});
  for (const { schema } of bodies) {
    for (const row of fieldRows(schema, (name) =>
      bodies.every((body) => body.schema.required?.includes(name)),
    ))
      rows.set(row[0] ?? '', row);
  }
  return rows.size === 0 ? [] : [markdownTable(['Field', 'Value', '', 'What it is'], [...rows.values()])];
}

/** @param parent name of the object that they are in, with its dot */
function fieldRows(
  { properties = {} }: Schema,
  isRequired: (name: string) => boolean | undefined,
  parent = '',
): string[][] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const choices = schema.anyOf ?? [schema];
    const objects = choices.filter(({ properties: inner }) => inner !== undefined);
    const row = [
      code(parent + name),
      typeOf(schema),
      isRequired(name) ? 'required' : '',
      schema.description ?? schema.items?.description ?? '',
    ];
    const inner = objects.flatMap((object) => fieldRows(object, () => false, `${parent}${name}.`));
    return [row, ...inner];
  });
}

function typeOf(schema: Schema): string {
  const words = schema.enum?.filter((word) => word !== null);
  if (words !== undefined) return words.map((word) => code(String(word))).join(', ');
  const { type = schema.anyOf?.map((choice) => choice.type).find((each) => each !== undefined) ?? 'any' } =
    schema;
  if (type === 'array') return `list${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}`;
  if (type !== 'string') return type;
  return schema.maxLength === undefined ? 'text' : `text, at most ${schema.maxLength} characters`;
}
