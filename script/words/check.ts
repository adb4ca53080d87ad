/** The rules of texts, run by textlint. */
import { TextlintKernel, type TextlintKernelRule } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import terminology from 'textlint-rule-terminology';
import { phraseRulesFor } from './phrases.ts';
import { readingEase, sentenceLength } from './sentences.ts';
import type { Text } from './texts.ts';

export interface Refusal {
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

/** The rule's own list, without names of fields and what is written otherwise here. */
const TERMS = {
  terms: [
    ['web[- ]hook(s)?', 'webhook$1'],
    ['time-out(s)?', 'timeout$1'],
  ],
  exclude: [
    ...['ID', "id['’]?s", "API['’]?s", "URL['’]?s", 'URL', 'URI', 'API', 'JSON', 'HTML', 'CSS', 'ZIP'],
    ...['cURL', 'Unix', 'Git', 'readme(s)?', 'file[- ]name(s)?', 'lock[- ]file(s)?', 'indexes\\b'],
    ...['lint(?:er|ing)?[ -]?rule(s)?', 'blank line(s)?'],
  ],
};

const kernel = new TextlintKernel();

/** @param ease for a page: the lowest reading ease that it may have, and what gets its own */
export async function refusals(
  { file, markdown: text, lineOf }: Omit<Text, 'isPage'>,
  ease?: { readonly floor: number; readonly measured: (ease: number) => void },
): Promise<Refusal[]> {
  const rules: TextlintKernelRule[] = [
    ...phraseRulesFor(text),
    { ruleId: 'sentence-length', rule: sentenceLength(30) },
    { ruleId: 'terminology', rule: terminology, options: TERMS },
    ...(ease === undefined ? [] : [{ ruleId: 'reading-ease', rule: readingEase(ease.floor, ease.measured) }]),
  ];
  const { messages } = await kernel.lintText(text, {
    filePath: file,
    ext: '.md',
    plugins: [{ pluginId: 'markdown', plugin: markdown.default ?? markdown }],
    rules,
  });
  return messages.map(({ line, ruleId, message }) => ({ line: lineOf(line), rule: ruleId, message }));
}
