/** A manifest's XML, without document type or own entities: nothing can grow, or name a file. */
import { CutOff, unusable } from '../presentation.ts';

export interface Element {
  /** Without its prefix. */
  readonly name: string;
  /** By their names as written. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly Element[];
  /** Text between its tags, without its children's. */
  readonly text: string;
}

interface OpenElement extends Element {
  readonly children: Element[];
  text: string;
}

const MAX_DEPTH = 32;
const MAX_ELEMENTS = 250_000;
/** Of an element. */
const MAX_ATTRIBUTES = 100;

/** Other markup than elements, and how it ends. */
const SKIPPED = [
  ['<!--', '-->'],
  ['<?', '?>'],
] as const;
const CDATA = '<![CDATA[';

const TAG = /<(\/?)([\w:.-]+)\s*/y;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')\s*/y;
const TAG_END = /(\/?)>/y;

/**
 * @returns the outermost element.
 * @throws {MediaFailure} if ill-formed, or with a document type; {CutOff}
 */
export function parseXml(text: string): Element {
  const tree = new Tree();
  for (let at = text.startsWith('\ufeff') ? 1 : 0; at < text.length; ) {
    const skipped = SKIPPED.find(([begin]) => text.startsWith(begin, at));
    if (skipped !== undefined) {
      at = endOf(text, skipped[1], at);
    } else if (text.startsWith(CDATA, at)) {
      const end = endOf(text, ']]>', at);
      tree.add(text.slice(at + CDATA.length, end - 3));
      at = end;
    } else if (text.startsWith('<!', at)) {
      throw unusable('the manifest has a document type, which is not allowed');
    } else if (text[at] === '<') {
      const tag = tagAt(text, at);
      tree.take(tag);
      at = tag.end;
    } else {
      const next = text.indexOf('<', at);
      const end = next < 0 ? text.length : next;
      tree.add(unescaped(text.slice(at, end)));
      at = end;
    }
  }
  return tree.root();
}

class Tree {
  readonly #top: OpenElement = { name: '', attributes: new Map(), children: [], text: '' };
  readonly #open = [this.#top];
  #elements = 0;

  add(text: string): void {
    this.#within.text += text;
  }

  take({ name, attributes, closes, isEmpty }: Tag): void {
    if (closes) {
      if (this.#open.length < 2 || this.#open.pop()?.name !== name) throw broken();
      return;
    }
    const element = { name, attributes, children: [], text: '' };
    this.#within.children.push(element);
    if (!isEmpty) this.#open.push(element);
    this.#elements += 1;
    if (this.#open.length > MAX_DEPTH || this.#elements > MAX_ELEMENTS) throw broken();
  }

  root(): Element {
    const [root, ...others] = this.#top.children;
    if (this.#open.length > 1) throw new CutOff(CUT_OFF);
    if (root === undefined || others.length > 0) throw broken();
    return root;
  }

  get #within(): OpenElement {
    return this.#open.at(-1) ?? this.#top;
  }
}

function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  if (at < 0) throw new CutOff(CUT_OFF);
  return at + mark.length;
}

interface Tag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly closes: boolean;
  readonly isEmpty: boolean;
  /** Behind it. */
  readonly end: number;
}

/** Each match begins where the last one ended, so that the time is linear in the text's length. */
function tagAt(text: string, at: number): Tag {
  const begin = matchAt(TAG, text, at);
  if (begin === null) throw brokenAt(text, at);
  const attributes = new Map<string, string>();
  let end = at + begin[0].length;
  for (let next = matchAt(ATTRIBUTE, text, end); next !== null; next = matchAt(ATTRIBUTE, text, end)) {
    const [whole, name = '', double, single = ''] = next;
    attributes.set(name, unescaped(double ?? single));
    if (attributes.size > MAX_ATTRIBUTES) throw broken();
    end += whole.length;
  }
  const last = matchAt(TAG_END, text, end);
  if (last === null) throw brokenAt(text, end);
  end += last[0].length;
  return { name: local(begin[2] ?? ''), attributes, closes: begin[1] === '/', isEmpty: last[1] === '/', end };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const CUT_OFF = 'the manifest is incomplete';

/** No tag ends behind it where the text does. */
function brokenAt(text: string, at: number): Error {
  return text.includes('>', at) ? broken() : new CutOff(CUT_OFF);
}

function broken(): Error {
  return unusable('the manifest is not well-formed');
}

function local(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

const ENTITIES = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }));

function unescaped(text: string): string {
  if (!text.includes('&')) return text;
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));/g, (all, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? all;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : '';
  });
}

export function childrenNamed({ children }: Element, name: string): Element[] {
  return children.filter((child) => child.name === name);
}
