/** The gateway's operations with their fields, read out of its OpenAPI document. */
import { fieldRow, type Rule, ruleOf } from './field-tables.ts';
import { code, markdownTable } from './markdown-table.ts';
import { documents } from './openapi-documents.ts';

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Rule;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Rule }>> };
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
  const given = parameters
    .filter((parameter) => parameter.in !== 'path')
    .map(({ name, in: place, required = false, description, schema }) => {
      const [field, value, ...rest] = fieldRow(name, { ...schema, description }, required);
      return [field, `${place}: ${value}`, ...rest];
    });
  const bodies = Object.values(requestBody?.content ?? {}).map(({ schema }) => schema);
  // A field is required if every kind of body requires it.
  const required = bodies[0]?.required?.filter((name) =>
    bodies.every((body) => body.required?.includes(name)),
  );
  const rows = [...given, ...bodies.flatMap((body) => fieldRows(body, required))];
  // The first of a name: a union may have the same field again.
  const table = rows.filter(([field], nth) => rows.findIndex(([other]) => other === field) === nth);
  return table.length === 0 ? [] : [markdownTable(['Field', 'Value', 'Default', 'What it is'], table)];
}

/** @param parent name of the object that they are in, with its dot */
function fieldRows({ properties = {} }: Rule, required: readonly string[] = [], parent = ''): string[][] {
  return Object.entries(properties).flatMap(([name, property]) => {
    const rule = ruleOf(property);
    const objects = (rule.anyOf ?? [rule]).map(ruleOf).filter((choice) => choice.properties !== undefined);
    return [
      fieldRow(parent + name, rule, required.includes(name)),
      ...objects.flatMap((object) =>
        fieldRows(object, objects.length === 1 ? object.required : [], `${parent}${name}.`),
      ),
    ];
  });
}
