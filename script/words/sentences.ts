/** The length of sentences, and how easily they are read, as textlint rules. */
import type { TxtNode, TxtParentNode } from '@textlint/ast-node-types';
import type { TextlintRuleModule } from '@textlint/types';
import { split } from 'sentence-splitter';
import { syllable } from 'syllable';
import { StringSource } from 'textlint-util-to-string';

interface Sentence {
  /** From the beginning of the block. */
  readonly at: number;
  readonly words: readonly string[];
}

/** Code counts as one word of one syllable: a name may be long, but is not read out. */
function sentencesOf(block: TxtParentNode): Sentence[] {
  const source = new StringSource(block as ConstructorParameters<typeof StringSource>[0], {
    replacer: ({ node, maskValue }) => (node.type === 'Code' ? maskValue('x') : undefined),
  });
  return split(source.toString())
    .filter(({ type }) => type === 'Sentence')
    .map(({ range: [from], raw }) => ({
      at: source.originalIndexFromIndex(from) ?? 0,
      words: raw.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)),
    }));
}

/** @param most words that a sentence may have */
export function sentenceLength(most: number): TextlintRuleModule {
  return ({ Syntax, RuleError, report, locator }) => {
    const measure = (block: TxtParentNode) => {
      for (const { at, words } of sentencesOf(block)) {
        const long = `${words.length} words, ${most} at most: split the sentence`;
        if (words.length > most) report(block, new RuleError(long, { padding: locator.at(at) }));
      }
    };
    return { [Syntax.Paragraph]: measure, [Syntax.TableCell]: measure };
  };
}

/**
 * Flesch's reading ease of the whole text: about 90 for a comic, 60 for a newspaper, 30 for a contract. Fewer than 50 words
 * have none.
 * @param measured gets the value
 */
export function readingEase(floor: number, measured: (ease: number) => void): TextlintRuleModule {
  return ({ Syntax, RuleError, report }) => {
    const sentences: Sentence[] = [];
    return {
      [Syntax.Paragraph](paragraph: TxtParentNode) {
        sentences.push(...sentencesOf(paragraph));
      },
      [Syntax.DocumentExit](document: TxtNode) {
        const words = sentences.flatMap((sentence) => sentence.words);
        if (words.length < 50) return;
        const syllables = words.reduce((sum, word) => sum + Math.max(1, syllable(word)), 0);
        const ease = 206.835 - (1.015 * words.length) / sentences.length - (84.6 * syllables) / words.length;
        measured(ease);
        const low = `reads with ${ease.toFixed(1)}, its floor is ${floor}: use shorter sentences and words`;
        if (ease < floor) report(document, new RuleError(low));
      },
    };
  };
}
