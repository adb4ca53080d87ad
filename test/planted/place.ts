/** Finds where a fault is planted: by the name of a function, or of a Lua script's file, and a piece of its code, wherever the file lies. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseSync } from '@swc/core';
import type { Fault } from './fault.ts';

export interface Planted {
  /** Relative to the checkout. */
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

export interface Named {
  /** `name`, `Class.member`, or `name.lua` for the whole of such a file. */
  readonly name: string;
  /** A function or method, and no other value. */
  readonly isFunction: boolean;
  readonly start: number;
  readonly end: number;
}

const SOURCES = ['src/**/*.{ts,lua}', 'packages/*/{src,web}/**/*.{ts,tsx,lua}', 'web/**/*.{ts,tsx}'];

/** The files of a checkout that faults are planted in, read once. */
export class Sources {
  readonly #texts = new Map<string, string>();
  readonly #named = new Map<string, readonly Named[]>();

  constructor(root: string) {
    const paths = globSync(SOURCES, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] });
    for (const path of paths) this.#texts.set(path, readFileSync(join(root, path), 'utf8'));
  }

  /** @throws Error that says why the fault does not apply */
  plant({ name, in: within, search, replace }: Fault): Planted {
    const pattern = new RegExp(search.trim().split(/\s+/).map(escaped).join('\\s+'), 'g');
    const places: { path: string; at: number; length: number }[] = [];
    let isNamed = false;
    for (const [path, text] of this.#texts) {
      if (!path.endsWith('.lua') && !text.includes(within.split(/[.#]+/).at(-1) ?? '')) continue;
      const ranges = this.#namedIn(path, text).filter((one) => one.name === within);
      isNamed ||= ranges.length > 0;
      if (ranges.length === 0) continue;
      for (const { index: at, 0: found } of text.matchAll(pattern)) {
        const isInside = ranges.some(({ start, end }) => start <= at && at + found.length <= end);
        if (isInside) places.push({ path, at, length: found.length });
      }
    }
    const [place] = places;
    if (!isNamed) throw new Error(`${name}: there is no ${within}`);
    if (place === undefined || places.length > 1) {
      throw new Error(`${name}: the code to replace stands ${places.length} times in ${within}, not once`);
    }
    const { path, at, length } = place;
    const before = this.#texts.get(path) ?? '';
    const after = before.slice(0, at) + replace + before.slice(at + length);
    if (after === before) throw new Error(`${name}: it changes nothing`);
    return { path, before, after };
  }

  #namedIn(path: string, text: string): readonly Named[] {
    const known =
      this.#named.get(path) ??
      (path.endsWith('.lua') ? [wholeOf(path, text)] : namedIn(text, path.endsWith('x')));
    this.#named.set(path, known);
    return known;
  }
}

function wholeOf(path: string, text: string): Named {
  return { name: basename(path), isFunction: false, start: 0, end: text.length };
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
}

interface Node {
  readonly type: string;
  readonly span: { readonly start: number; readonly end: number };
  readonly [field: string]: unknown;
}

/** Every function, method, class member and variable of a file. */
export function namedIn(text: string, isTsx: boolean): Named[] {
  const bytes = Buffer.from(text);
  // swc counts bytes, from 1.
  const isAscii = bytes.length === text.length;
  const place = (at: number): number => (isAscii ? at - 1 : bytes.subarray(0, at - 1).toString().length);
  const named: Named[] = [];
  const note = (node: Node, name: string, ofClass: string): void => {
    const { type, span } = node;
    const isMember = /^(Class|Private)(Method|Property)$|^Constructor$/.test(type);
    named.push({
      name: isMember ? `${ofClass}.${name}` : name,
      isFunction: [type, typeOf(node.init), typeOf(node.value)].some((one) =>
        /Function|Method|Constructor/.test(one),
      ),
      start: place(span.start),
      end: place(span.end),
    });
  };
  const walk = (value: unknown, ofClass: string): void => {
    if (!isNode(value)) return;
    const name = nameOf(value);
    if (name !== undefined) note(value, name, ofClass);
    const inner = value.type === 'ClassDeclaration' ? (name ?? '') : ofClass;
    for (const child of Object.values(value)) walk(child, inner);
  };
  walk(parseSync(text, { syntax: 'typescript', tsx: isTsx, target: 'es2024' }).body, '');
  return named;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}

const typeOf = (value: unknown): string => (isNode(value) ? String(value.type) : '');

function nameOf(node: Node): string | undefined {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
      return textOf(node.identifier);
    case 'VariableDeclarator':
      return textOf(node.id);
    case 'Constructor':
      return 'constructor';
    case 'ClassMethod':
    case 'ClassProperty':
      return textOf(node.key);
    case 'PrivateMethod':
    case 'PrivateProperty':
      return `#${textOf(node.key)}`;
    default:
      return undefined;
  }
}

function textOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Identifier' || node.type === 'PrivateName') return String(node.value ?? textOf(node.id));
  return undefined;
}
