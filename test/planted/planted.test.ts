import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { faults } from './faults.ts';
import { Sources } from './place.ts';
import { wrongPlace } from './promised-in.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('each planted fault', () => {
  const sources = new Sources(ROOT);

  it.each(faults)('$name applies, and the tests that should catch it exist', (fault) => {
    const { before, after } = sources.plant(fault);
    expect(after).not.toBe(before);
    expect(fault.tests.filter((test) => !existsSync(join(ROOT, test)))).toEqual([]);
    expect(fault.tests.length).toBeGreaterThan(0);
  });

  it('says where its promise stands', () => {
    const lost = faults.flatMap(({ name, promise }) => {
      const wrong = wrongPlace(promise, ROOT);
      return wrong === undefined ? [] : [`${name}: ${promise}: ${wrong}`];
    });
    expect(lost).toEqual([]);
  });

  it('has a name of its own', () => {
    const names = faults.map(({ name }) => name);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });
});

describe('a fault that no longer applies is refused', () => {
  const sources = new Sources(ROOT);
  const fault = {
    name: 'example',
    promise: 'none',
    in: 'rangeOf',
    search: 'sizeBytes - Number(last)',
    replace: 'sizeBytes',
    tests: [],
  };

  it('when its function is gone', () => {
    expect(() => sources.plant({ ...fault, in: 'rangesOf' })).toThrow('example: there is no rangesOf');
  });

  it('when its code is gone, or stands there twice', () => {
    const times = (count: number) => `stands ${count} times in rangeOf, not once`;
    expect(() => sources.plant({ ...fault, search: 'no such code' })).toThrow(times(0));
    expect(() => sources.plant({ ...fault, search: 'sizeBytes - 1' })).toThrow(times(2));
  });

  it('when its Lua script is gone', () => {
    expect(() => sources.plant({ ...fault, in: 'reserves.lua' })).toThrow(
      'example: there is no reserves.lua',
    );
  });

  it('when it changes nothing', () => {
    expect(() => sources.plant({ ...fault, replace: fault.search })).toThrow('example: it changes nothing');
  });
});

describe('a promise that stands nowhere is refused', () => {
  it.each([
    ['no-page.md: something', 'names a page that does not exist'],
    ['README.md "No such section": something', 'README.md has no section, row or term "No such section"'],
    ['errors.md NO_SUCH_CODE: something', 'docs/reference/errors.md does not name NO_SUCH_CODE'],
    ['decision 9999: something', 'names a page that does not exist'],
    ['the page api.md: something', 'names a page in a way of its own'],
  ])('%s', (promise, wrong) => {
    expect(wrongPlace(promise, ROOT)).toBe(wrong);
  });

  it('the contract, which is no page, is not', () => {
    expect(wrongPlace('contract "Errors": something', ROOT)).toBeUndefined();
  });
});
