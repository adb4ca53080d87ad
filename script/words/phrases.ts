/** The kinds of script/words/phrases.yaml, each as a textlint rule of its own, so that a refusal names its kind. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TextlintKernelRule } from '@textlint/kernel';
import pattern from '@textlint-rule/textlint-rule-pattern';
import { parse } from 'yaml';
import { z } from 'zod';

const Phrases = z.record(z.string(), z.record(z.string(), z.string()));

const rule = 'default' in pattern ? pattern.default : pattern;

const kinds = Object.entries(
  Phrases.parse(parse(readFileSync(join(import.meta.dirname, 'phrases.yaml'), 'utf8'))),
).map(([ruleId, phrases]) => ({
  ruleId,
  patterns: Object.entries(phrases).map(([phrase, better]) => {
    const whole = `(?<![\\w’'-])(?:${phrase.replaceAll(' ', '\\s+')})(?![\\w’'-])`;
    return { anywhere: new RegExp(whole, 'imu'), pattern: `/${whole}/i`, message: `write ${better}` };
  }),
}));

/** The rule compares each pattern with each piece of the text: only those that the text has are handed to it. */
export function phraseRulesFor(text: string): TextlintKernelRule[] {
  return kinds.flatMap(({ ruleId, patterns }) => {
    const found = patterns.filter(({ anywhere }) => anywhere.test(text));
    return found.length === 0 ? [] : [{ ruleId, rule, options: { patterns: found } }];
  });
}
