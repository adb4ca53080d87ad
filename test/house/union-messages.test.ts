/** Zod says only "Invalid input" of a union, which names neither the rule nor the remedy. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { projectFolder } from '../docs/markdown.ts';

const folder = join(projectFolder, 'packages', 'contract', 'src');
const modules: Record<string, unknown>[] = await Promise.all(
  readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => import(join(folder, name))),
);

/** Each schema that these are made of. */
function partsOf(schemas: readonly unknown[], found = new Set<z.ZodType>()): Set<z.ZodType> {
  for (const schema of schemas) {
    if (!(schema instanceof z.ZodType) || found.has(schema)) continue;
    found.add(schema);
    partsOf(
      Object.values(schema.def).flatMap((part) =>
        part instanceof z.ZodType || typeof part !== 'object' ? [part] : Object.values(part ?? {}),
      ),
      found,
    );
  }
  return found;
}

it('each union of a request has a message of its own', () => {
  const requests = modules.flatMap((module) =>
    Object.entries(module)
      .filter(([name]) => /(Request|Fields|Query)$/.test(name))
      .map(([, schema]) => schema),
  );
  const unions = [...partsOf(requests)].filter((schema) => schema instanceof z.ZodUnion);
  expect(unions.length).toBeGreaterThan(6);
  // No choice of any request takes a bigint.
  const messages = unions.map((union) => union.safeParse(1n).error?.issues[0]?.message);
  expect(messages.filter((message = '') => /^Invalid input$/.test(message))).toEqual([]);
});
