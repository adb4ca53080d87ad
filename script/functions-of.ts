/** The functions of a TypeScript source that have a body in braces. */
import { parseSync } from '@swc/core';

export interface FoundFunction {
  /** Its own, or of what it is given to; `anonymous` where there is neither. */
  readonly name: string;
  /** Offset of the first byte after the opening brace. */
  readonly bodyStart: number;
  /** From its first line to its last. */
  readonly lines: number;
}

interface Node {
  readonly type?: string;
  readonly span?: { readonly start: number; readonly end: number };
  readonly [field: string]: unknown;
}

const FUNCTIONS = new Set([
  'ArrowFunctionExpression',
  'ClassMethod',
  'Constructor',
  'FunctionDeclaration',
  'FunctionExpression',
  'GetterProperty',
  'MethodProperty',
  'PrivateMethod',
  'SetterProperty',
]);

const BODIES = new Set(['BlockStatement', 'FunctionBody']);

export function functionsOf(source: Buffer): FoundFunction[] {
  // In ASCII, where a character is a byte.
  const text = source.map((byte) => (byte < 0x80 ? byte : 0x78)).toString();
  const module = parseSync(text, { syntax: 'typescript', target: 'esnext' });
  const base = 1; // swc counts from 1.
  const found: FoundFunction[] = [];
  for (const { node, name } of nodesOf(module.body, 'anonymous')) {
    // A method's span and body lie in the function that it holds.
    const { body } = (node.function as Node | undefined) ?? node;
    const { type, span } = (body ?? {}) as Node;
    if (!FUNCTIONS.has(node.type ?? '') || !BODIES.has(type ?? '') || !span || !node.span) continue;
    const whole = source.subarray(node.span.start - base, node.span.end - base);
    found.push({ name, bodyStart: span.start - base + 1, lines: whole.toString().split('\n').length });
  }
  return found;
}

/** All nodes below, each with the name that is nearest above it. */
function* nodesOf(value: unknown, name: string): Generator<{ node: Node; name: string }> {
  if (typeof value !== 'object' || value === null) return;
  const own = Array.isArray(value) ? name : (nameOf(value as Node) ?? name);
  if (!Array.isArray(value)) yield { node: value as Node, name: own };
  for (const [field, child] of Object.entries(value)) if (field !== 'span') yield* nodesOf(child, own);
}

function nameOf(node: Node): string | undefined {
  const named = (node.identifier ?? node.key ?? node.id) as
    | { value?: unknown; id?: { value?: unknown } }
    | undefined;
  const value = named?.value ?? named?.id?.value;
  return typeof value === 'string' ? value : undefined;
}
