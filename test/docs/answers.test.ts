import { describe, expect, it } from 'vitest';
import { answerSchemas } from './answer-schemas.ts';
import { type CodeBlock, codeBlocks, pages, shortenedKeys, shortenedValues } from './markdown.ts';

const shown = pages().flatMap((page) =>
  codeBlocks(page)
    .filter(({ language }) => language === 'json')
    .map((block) => ({ where: `${page}:${block.line}`, block })),
);

/** A shortened hash fits again; other shortened values fit as they are. */
function completed(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, inner: unknown) =>
    key === 'sha256' && typeof inner === 'string' ? inner.replace('…', '').padEnd(64, '0') : inner,
  );
}

function schemaOf({ mark }: CodeBlock) {
  const name = /^answer: ([^;]+)/.exec(mark)?.[1] ?? '';
  return answerSchemas[name];
}

describe('JSON that the pages show', () => {
  it('is found', () => {
    expect(shown.length).toBeGreaterThan(5);
  });

  it.each(shown)('at $where fits the schema that its mark names, with no field beside it', ({ block }) => {
    const schema = schemaOf(block);
    expect(Object.keys(answerSchemas), `mark: ${block.mark}`).toContain(
      /^answer: ([^;]+)/.exec(block.mark)?.[1],
    );
    const value = completed(JSON.parse(block.text));
    expect(schema?.parse(value)).toEqual(value);
  });

  it.each(shown)('at $where is shortened only where its mark says so', ({ block }) => {
    const allowed = shortenedKeys(block);
    expect(shortenedValues(JSON.parse(block.text)).filter((key) => !allowed.includes(key))).toEqual([]);
  });
});
