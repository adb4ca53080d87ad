/** JSON Schemas as tables of fields. */
import type { Schema } from './document-parts.ts';
import { type Html, html, inline } from './html.ts';

const COMPONENT = '#/components/schemas/';

/** Named schemas by their names. */
type Named = Readonly<Record<string, Schema>>;

interface View {
  /** Schemas to show in the place where they are named, instead of a link alone. */
  readonly expand?: Named;
  /** Whether the reader writes such an object or reads it. Default: written when it refuses unknown fields. */
  readonly side?: 'written' | 'read';
}

/** The fields of an object schema, those of nested objects under dotted names. */
export function fieldTable(schema: Schema, view: View = {}): Html {
  const { expand = {}, side = schema.additionalProperties === false ? 'written' : 'read' } = view;
  const rows = fieldRows(resolve(schema, expand), '', expand, side);
  return rows.length === 0
    ? html`<p>${typeView(schema)} ${limitsView(schema)}</p>`
    : html`<table class="fields"><tbody>${rows}</tbody></table>`;
}

function fieldRows(schema: Schema, prefix: string, expand: Named, side: 'written' | 'read'): Html[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const required = schema.required?.includes(name) ?? false;
    const nested = nestedOf(field, expand);
    const inner = nested
      ? fieldRows(nested, `${prefix}${name}${field.items ? '[]' : ''}.`, expand, side)
      : [];
    const mark = side === 'written' ? (required ? 'required' : '') : required ? '' : 'not always';
    return [fieldRow(`${prefix}${name}`, field, mark), ...inner];
  });
}

export function fieldRow(
  name: string,
  field: Schema,
  mark: 'required' | 'not always' | '',
  place = '',
): Html {
  const { description } = field;
  return html`<tr>
    <th scope="row"><code>${name}</code>${mark === '' ? '' : html` <span class="${mark === 'required' ? 'required' : 'limit'}">${mark}</span>`}</th>
    <td><span class="type">${typeView(field)}</span> ${limitsView(field)}${place === '' ? '' : html` <span class="limit">in the ${place}</span>`}${
      description === undefined ? '' : html`<span class="about">${inline(description)}</span>`
    }</td>
  </tr>`;
}

/** The object whose fields are shown under the field's own name; the items of a list have a place of their own. */
function nestedOf(field: Schema, expand: Named): Schema | undefined {
  const { items = {} } = field;
  const objects = variantsOf(field, expand).concat(items.$ref === undefined ? variantsOf(items, {}) : []);
  const [first, ...others] = objects.filter(({ properties }) => properties !== undefined);
  return first && others.reduce(merged, first);
}

function variantsOf(field: Schema, expand: Named): Schema[] {
  const resolved = resolve(field, expand);
  const choices = resolved.anyOf ?? resolved.oneOf ?? [];
  return [resolved, ...choices.map((choice) => resolve(choice, expand))];
}

/** One object for several that a field may hold: what only some of them have is not required. */
function merged(one: Schema, other: Schema): Schema {
  const shared = Object.entries(one.properties ?? {}).flatMap(([name, field]) => {
    const { const: value } = other.properties?.[name] ?? {};
    return value === undefined ? [] : [[name, { enum: [field.const, value] }] as const];
  });
  return {
    properties: { ...one.properties, ...other.properties, ...Object.fromEntries(shared) },
    required: (one.required ?? []).filter((name) => other.required?.includes(name)),
  };
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

function schemaLink(reference: string): Html {
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
    ...range(schema.minimum, schema.maximum, ''),
    ...(schema.exclusiveMinimum === undefined ? [] : [`> ${schema.exclusiveMinimum}`]),
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
