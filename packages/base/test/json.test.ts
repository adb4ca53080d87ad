/** JSON of others: what is over a limit is never parsed. That the shape is told rightly stands in packages/kit/test/http/json-shape.test.ts. */
import { afterEach, expect, it, vi } from 'vitest';
import { OddJson, parseJson } from '../src/json.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

it.each([
  ['more bytes than allowed', '"aaaaaaa"', { maxBytes: 8 }, '8 bytes'],
  ['more bytes than characters', '"äää"', { maxBytes: 6 }, '6 bytes'],
  ['16 MiB and more', `"${'a'.repeat(16 * 1024 * 1024)}"`, {}, '16777216 bytes'],
  ['more values than allowed', '[1,[],{}]', { maxValues: 5 }, '5 values'],
  ['100,001 values', `[${'1,'.repeat(100_000)}1]`, {}, '100000 values'],
  ['65 levels', `${'['.repeat(65)}${']'.repeat(65)}`, {}, '64 levels'],
])('%s: refused before it is parsed', (_what, text, limits, named) => {
  const parse = vi.spyOn(JSON, 'parse');
  expect(() => parseJson(text, limits)).toThrow(OddJson);
  expect(() => parseJson(text, limits)).toThrow(named);
  expect(parse).not.toHaveBeenCalled();
});

it('anything else is what JSON.parse makes of it', () => {
  expect(parseJson('{"a":[1,"ä"]}', { maxBytes: 14, maxValues: 5 })).toEqual({ a: [1, 'ä'] });
  expect(() => parseJson('{"a":')).toThrow(SyntaxError);
});
