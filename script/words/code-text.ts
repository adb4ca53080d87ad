/** The comments and strings of a source file as Markdown, one paragraph each. */
import { type ParseResult, parseSync, Visitor } from 'rolldown/utils';

type Comment = ParseResult['comments'][number];

/** Lines of one comment or string, the first of them at `at` in the source. */
interface Part {
  readonly at: number;
  readonly lines: readonly string[];
}

export interface CodeText {
  readonly markdown: string;
  /** By line of the Markdown, from 0: the line of the source, from 1. */
  readonly lines: readonly number[];
}

/** @param file its extension names the language */
export function codeText(
  file: string,
  source: string,
  wanted: { readonly comments: boolean; readonly strings: boolean },
): CodeText {
  const parsed = parseSync(file, source);
  if (parsed.errors[0] !== undefined) throw new Error(`${file}: ${parsed.errors[0].message}`);
  const parts = [
    ...(wanted.comments ? commentsIn(source, parsed.comments) : []),
    ...(wanted.strings ? stringsIn(parsed.program) : []),
  ].toSorted((one, other) => one.at - other.at);
  const starts = [...source.matchAll(/^/gm)].map(({ index }) => index);
  const markdown: string[] = [];
  const lines: number[] = [];
  for (const part of parts) {
    const first = starts.findLastIndex((start) => start <= part.at) + 1;
    part.lines.forEach((line, index) => {
      markdown.push(line);
      lines.push(first + index);
    });
    markdown.push('');
    lines.push(first + part.lines.length - 1);
  }
  return { markdown: markdown.join('\n'), lines };
}

/** Line comments that follow one another are one. */
function commentsIn(source: string, comments: readonly Comment[]): Part[] {
  const parts: { at: number; end: number; isLine: boolean; lines: string[] }[] = [];
  for (const { type, value, start, end } of comments) {
    const isLine = type === 'Line';
    const last = parts.at(-1);
    if (isLine && last?.isLine && /^\r?\n[ \t]*$/.test(source.slice(last.end, start))) {
      last.lines.push(plain(value));
      last.end = end;
    } else {
      parts.push({ at: start, end, isLine, lines: value.split('\n').map(plain) });
    }
  }
  return parts;
}

/** Without the star before it; a tag begins a paragraph, which its name is no part of; what tools read is left out. */
function plain(line: string): string {
  return line
    .replace(/^\s*\*? ?/, '')
    .replace(/^(biome-ignore .*?:|@ts-expect-error:?|@module-tag .*|[#@]__\w+__) ?/, '')
    .replace(/^@(param \S+|\w+) ?(.*)$/, '- $2')
    .replaceAll(/\{@link (\S+?)\}/g, '`$1`');
}

function stringsIn(program: ParseResult['program']): Part[] {
  const parts: Part[] = [];
  const add = (at: number, text: string) => {
    if (isProse(text)) parts.push({ at, lines: text.split('\n') });
  };
  new Visitor({
    Literal: ({ value, start }) => {
      if (typeof value === 'string') add(start, value);
    },
    TemplateLiteral: ({ quasis, start }) => {
      add(start, quasis.map(({ value }) => value.cooked ?? value.raw).join('`…`'));
    },
    JSXText: ({ value, start }) => add(start, value.replaceAll(/\n\s+/g, '\n')),
  }).visit(program);
  return parts;
}

/** Several words, or a label; no identifier, media type, path, command, markup, or lines set by hand. */
function isProse(text: string): boolean {
  const hasWords = /[\p{L}\d`.,:;)] [\p{L}`(]|^\s*\p{Lu}\p{Ll}+\s*$/u.test(text);
  return hasWords && !/[<{}\\]|=>|\$\(|\n\s|^\w+\/[\w+.-]+;/.test(text);
}
