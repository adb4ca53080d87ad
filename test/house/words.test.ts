/** The check of words refuses what it is there for, and lets fluent text pass. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { refusals } from '../../script/words/check.ts';
import { codeText } from '../../script/words/code-text.ts';
import { withoutGenerated } from '../../script/words/texts.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, 'words', name), 'utf8');

const refused = Object.entries(parse(read('refused.yaml')) as Record<string, string[]>).flatMap(
  ([rule, sentences]) => sentences.map((sentence) => ({ rule, sentence })),
);

const rulesAgainst = async (markdown: string, floor = 0) =>
  (
    await refusals(
      { file: 'text.md', markdown, lineOf: (line) => line },
      { floor, measured: () => undefined },
    )
  ).map(({ rule }) => rule);

describe('the check of words', () => {
  it.each(refused)('refuses by $rule: $sentence', async ({ rule, sentence }) => {
    expect(await rulesAgainst(sentence)).toContain(rule);
  });

  it('refuses a page that is harder to read than its floor', async () => {
    const hard = 'Organisational responsibilities necessitate administrative considerations. '.repeat(10);
    expect(await rulesAgainst(hard, 60)).toEqual(['reading-ease']);
  });

  it('has nothing against fluent text', async () => {
    const markdown = read('fluent.md');
    expect(
      await refusals(
        { file: 'fluent.md', markdown, lineOf: (line) => line },
        { floor: 60, measured: () => undefined },
      ),
    ).toEqual([]);
  });

  it('reads comments and strings of code, and says their lines', async () => {
    const source = [
      'const one = 1;',
      '/**',
      ' * Takes a file,',
      ' * all the same.',
      ' */',
      "const message = 'Ends in vain';",
      '// Whoever asks,',
      '// is answered meanwhile.',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: code to read
      'const name = `a ${one} that is told`;',
    ].join('\n');
    const { markdown, lines } = codeText('code.ts', source, { comments: true, strings: true });
    const found = await refusals({ file: 'code.ts', markdown, lineOf: (line) => lines[line - 1] ?? 0 });
    expect(found.map(({ line, rule }) => `${line} ${rule}`)).toEqual([
      '4 phrase',
      '6 phrase',
      '7 pronoun',
      '8 phrase',
      '9 phrase',
    ]);
  });

  it('leaves out what is generated, and keeps the lines', () => {
    const page = 'a\n<!-- generated: x -->\nmeanwhile\n<!-- end of generated: x -->\nb\n';
    expect(withoutGenerated(page)).toBe('a\n\n\n\nb\n');
  });
});
