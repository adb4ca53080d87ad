/** Compares what a page shows with what a run gave. */
import { expect } from 'vitest';
import { type CodeBlock, shortenedKeys } from './markdown.ts';

/** What a reader compares: which fields there are and of what kind, not their values. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(shapeOf);
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([key, inner]) => [key, shapeOf(inner)]),
    );
  }
  return value === null ? null : typeof value;
}

/** @param shown what the block shows, of the same shape as what was answered live */
export function expectSame(page: string, block: CodeBlock, live: unknown, shown: unknown): void {
  const cut = shortenedKeys(block);
  expect(
    cut.every((key) => block.text.includes(`"${key}"`)),
    `shortened: ${cut.join(', ')}`,
  ).toBe(true);
  expect(shapeOf(shown), `${page}:${block.line}`).toEqual(shapeOf(live));
}
