/** JSON values as the literals of other languages. */

interface Notation {
  readonly step: string;
  readonly key: (name: string) => string;
  readonly text: (value: string) => string;
  readonly words: Readonly<Record<'true' | 'false' | 'null', string>>;
  /** Around the fields of an object that stand in one line. */
  readonly space: string;
}

const notations = {
  javascript: {
    step: '  ',
    key: (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : singleQuoted(name)),
    text: singleQuoted,
    words: { true: 'true', false: 'false', null: 'null' },
    space: ' ',
  },
  python: {
    step: '    ',
    key: (name) => JSON.stringify(name),
    text: (value) => JSON.stringify(value),
    words: { true: 'True', false: 'False', null: 'None' },
    space: '',
  },
} as const satisfies Record<string, Notation>;

const LONGEST_LINE = 88;

function singleQuoted(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inner}'`;
}

/** @param indent of the line on which the literal begins */
export function literalOf(value: unknown, language: keyof typeof notations, indent = ''): string {
  const notation: Notation = notations[language];
  if (typeof value === 'string') return notation.text(value);
  if (value === null || typeof value === 'boolean') return notation.words[`${value}`];
  if (typeof value !== 'object') return String(value);
  const inner = indent + notation.step;
  const parts = Array.isArray(value)
    ? value.map((item) => literalOf(item, language, inner))
    : Object.entries(value).map(
        ([name, field]) => `${notation.key(name)}: ${literalOf(field, language, inner)}`,
      );
  const [open, close, space] = Array.isArray(value) ? ['[', ']', ''] : ['{', '}', notation.space];
  const short = `${open}${space}${parts.join(', ')}${space}${close}`;
  if (parts.length === 0) return `${open}${close}`;
  return short.includes('\n') || indent.length + short.length > LONGEST_LINE
    ? `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close}`
    : short;
}
