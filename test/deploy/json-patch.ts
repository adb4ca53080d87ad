/** RFC 6902, as far as deploy/kubernetes uses it: test, add, replace, remove. */
import { isDeepStrictEqual } from 'node:util';
import type { Json } from '../client.ts';

const operationsByName: Readonly<
  Record<string, (parent: Json, key: string, value: Json, path: string) => void>
> = {
  test(parent, key, value, path) {
    if (!isDeepStrictEqual(parent[key], value)) throw new Error(`${path} is not ${JSON.stringify(value)}`);
  },
  add(parent, key, value) {
    if (Array.isArray(parent)) parent.splice(key === '-' ? parent.length : Number(key), 0, value);
    else parent[key] = value;
  },
  replace(parent, key, value) {
    parent[key] = value;
  },
  remove(parent, key) {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  },
};

/** Changes the document. @throws Error when it has not the place, or does not pass a test */
export function applyPatch(document: Json, operations: readonly Json[]): void {
  for (const { op, path, value } of operations) {
    const steps: string[] = path
      .slice(1)
      .split('/')
      .map((step: string) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const key = steps.pop() ?? '';
    const parent: Json = steps.reduce((at: Json, step) => at?.[step], document);
    if (parent === undefined || (op !== 'add' && parent[key] === undefined))
      throw new Error(`there is no ${path}`);
    // Each document its own copy: what is patched next may be within.
    operationsByName[op]?.(parent, key, structuredClone(value), path);
  }
}
