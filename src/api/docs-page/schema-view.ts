/** JSON Schemas as tables of fields. */
import type { Schema } from './document-parts.ts';
import { type Html, html, inline } from './html.ts';

const COMPONENT = '#/components/schemas/';

/** Named schemas by their names. */
export type Named = Readonly<Record<string, Schema>>;

/**
 * The fields of an object schema, those of nested objects under dotted names.
 * @param expand schemas to show in the place where they are named, instead of a link alone
 */
export function fieldTable(schema: Schema, expand: Named = {}): Html {
  const rows = fieldRows(resolve(schema, expand), '', expand);
  return rows.length === 0
    ? html`<p>${typeView(schema)} ${limitsView(schema)}</p>`
    : html`<table class="fields"><tbody>${rows}</tbody></table>`;
}

function fieldRows(schema: Schema, prefix: string, expand: Named): Html[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const required = schema.required?.includes(name) ?? false;
    const nested = nestedOf(field, expand);
    const inner = nested ? fieldRows(nested, `${prefix}${name}${field.items ? '[]' : ''}.`, expand) : [];
    return [fieldRow(`${prefix}${name}`, field, required), ...inner];
  });
}

export function fieldRow(
  name: string,
  field: Schema,
  required: boolean,
  description = field.description,
): Html {
  return html`<tr>
    <th scope="row"><code>${name}</code>${required ? html` <span class="required">required</span>` : ''}</th>
    <td><span class="type">${typeView(field)}</span> ${limitsView(field)}${
      description === undefined ? '' : html`<span class="about">${inline(description)}</span>`
    }</td>
  </tr>`;
}

/** The object whose fields are shown under the field's own name. */
function nestedOf(field: Schema, expand: Named): Schema | undefined {
  const candidates = [field, ...(field.anyOf ?? []), ...(field.items ? [field.items] : [])];
  return candidates
    .map((candidate) => resolve(candidate, expand))
    .find(({ properties }) => properties !== undefined);
}

function resolve(schema: Schema, expand: Named): Schema {
  return expand[schema.$ref?.slice(COMPONENT.length) ?? ''] ?? schema;
}

export function typeView(schema: Schema): Html {
  if (schema.$ref !== undefined) {
    return schemaLink(schema.$ref);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    return html`${joined(choices.map(typeView))}`;
  }
  if (schema.enum !== undefined) {
    return html`${joined(schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code>`))}`;
  }
  if (schema.const !== undefined) {
    return html`<code>${JSON.stringify(schema.const)}</code>`;
  }
  if (schema.items !== undefined) {
    return html`list of ${typeView(schema.items)}`;
  }
  const types = [schema.type ?? 'anything'].flat();
  return html`${schema.format === 'binary' ? 'bytes' : joined(types.map((type) => html`${type}`))}`;
}

export function schemaLink(reference: string): Html {
  const name = reference.slice(COMPONENT.length);
  return html`<a href="#schema-${name}">${name}</a>`;
}

function joined(parts: readonly Html[]): Html[] {
  return parts.map((part, index) => (index === 0 ? part : html` <span class="or">or</span> ${part}`));
}

function limitsView(schema: Schema): Html {
  const limits = limitsOf(schema).map((limit) => html` <span class="limit">${inline(limit)}</span>`);
  return html`${limits}`;
}

function limitsOf(schema: Schema): string[] {
  const { default: preset, format, pattern } = schema;
  return [
    ...(format === undefined || format === 'binary' ? [] : [format]),
    ...range(schema.minimum ?? schema.exclusiveMinimum, schema.maximum, ''),
    ...range(schema.minLength, schema.maxLength, ' characters'),
    ...range(schema.minItems, schema.maxItems, ' items'),
    ...(pattern === undefined ? [] : [`\`${pattern}\``]),
    ...(preset === undefined || typeof preset === 'object' ? [] : [`default \`${JSON.stringify(preset)}\``]),
  ];
}

function range(least: number | undefined, most: number | undefined, unit: string): string[] {
  // zod names the range of safe integers where a schema has none of its own.
  const from = least === undefined || least <= Number.MIN_SAFE_INTEGER ? undefined : least;
  const to = most === undefined || most >= Number.MAX_SAFE_INTEGER ? undefined : most;
  if (from === undefined && to === undefined) {
    return [];
  }
  return [
    to === undefined ? `≥ ${from}${unit}` : from === undefined ? `≤ ${to}${unit}` : `${from} … ${to}${unit}`,
  ];
}
