/** Examples of bodies and answers: written for a schema, or made from its fields' `example`. */
import { z } from 'zod';
import type { Examples } from './description.ts';

/** Examples by their schema. */
type KnownExamples = ReadonlyMap<z.ZodType, Examples>;

/** A row of a table of examples; the compiler checks it against its schema. */
export function example<Schema extends z.ZodType>(
  schema: Schema,
  examples: Readonly<Record<string, { summary: string; value: z.input<Schema> }>>,
): [z.ZodType, Examples] {
  return [schema, examples];
}

/** The known examples of a schema, or one made from its fields; undefined if a field has none. */
export function examplesOf(schema: z.ZodType, known: KnownExamples): Examples | undefined {
  // A schema of constants needs no example.
  const isConstant =
    schema instanceof z.ZodObject &&
    Object.values(schema.shape).every((part) => part instanceof z.ZodLiteral);
  const value = known.has(schema) || isConstant ? undefined : sampleOf(schema, known);
  return known.get(schema) ?? (value === undefined ? undefined : { usual: { summary: 'Usual', value } });
}

/** A schema's known example, its `example`, or one made of its parts; undefined: none. */
export function sampleOf(schema: z.ZodType, known: KnownExamples): unknown {
  const [written] = Object.values(known.get(schema) ?? {});
  const meta = schema.meta() ?? {};
  // An example may be null.
  return written?.value ?? ('example' in meta ? meta.example : sampleOfParts(schema, known));
}

function sampleOfParts(schema: z.ZodType, known: KnownExamples): unknown {
  if (schema instanceof z.ZodObject) {
    const parts = Object.entries<z.ZodType>(schema.shape).map(([name, part]) => ({
      name,
      isOptional: part.safeParse(undefined).success,
      value: sampleOf(part, known),
    }));
    return parts.every(({ isOptional, value }) => isOptional || value !== undefined)
      ? Object.fromEntries(parts.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])))
      : undefined;
  }
  if (schema instanceof z.ZodArray) {
    const item = sampleOf(schema.element as z.ZodType, known);
    return item === undefined ? undefined : [item];
  }
  if (schema instanceof z.ZodUnion) {
    return schema.options
      .map((option) => sampleOf(option as z.ZodType, known))
      .find((value) => value !== undefined);
  }
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) {
    return sampleOf(schema.unwrap() as z.ZodType, known);
  }
  if (schema instanceof z.ZodLiteral) {
    return schema.value;
  }
  if (schema instanceof z.ZodISODateTime) {
    return '2026-01-01T00:00:00.000Z';
  }
  return schema instanceof z.ZodFile ? '<the bytes of the file>' : undefined;
}
