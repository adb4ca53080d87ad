import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verifyJson } from '../../src/http/json-body.ts';

const MIB = 1024 * 1024;

/** What is wrong; undefined for nothing. */
function verdict(text: string | Buffer, encoding = 'utf-8'): string | undefined {
  try {
    verifyJson(undefined, undefined, Buffer.from(text as string), encoding);
    return undefined;
  } catch (error) {
    return (error as { type: string }).type;
  }
}

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('what JSON may be', () => {
  it.each([
    ['64 levels', nested(64), undefined],
    ['65 levels', nested(65), 'json.odd'],
    ['objects and arrays in turn', `${'{"a":['.repeat(33)}`, 'json.odd'],
    ['100,000 levels that never end', '['.repeat(100_000), 'json.odd'],
    ['many side by side', `[${'[],'.repeat(20_000)}0]`, undefined],
    ['100,001 values', `[${'1,'.repeat(100_000)}1]`, 'json.odd'],
    ['brackets in a string', `"${'['.repeat(1000)}"`, undefined],
    ['brackets behind an escaped quote', `"\\"${'['.repeat(1000)}"`, undefined],
    ['brackets behind a string that ends with a backslash', `["\\\\",${nested(65)}]`, 'json.odd'],
    ['a string that does not end', `"${'['.repeat(1000)}`, undefined],
    ['nothing', '', undefined],
    ['no JSON at all', 'hello', undefined],
    ['invalid UTF-8', Buffer.from([0x22, 0xc3, 0x28, 0x22]), 'json.odd'],
    ['half a surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'json.odd'],
    ['a zero byte', Buffer.from([0x22, 0, 0x22]), undefined],
  ])('%s', (_what, text, expected) => {
    expect(verdict(text)).toBe(expected);
  });

  it('another encoding is refused, since its brackets could not be seen', () => {
    expect(verdict(Buffer.from('{}', 'utf16le'), 'utf-16le')).toBe('charset.unsupported');
    expect(verdict('{}', 'UTF-8')).toBeUndefined();
  });

  it('tells the depth of any value, however it is written', () => {
    const wrapped = (value: unknown, levels: number): unknown =>
      levels === 0 ? value : wrapped(levels % 2 === 0 ? [value] : { '"[{': value }, levels - 1);
    fc.assert(
      fc.property(fc.string(), fc.nat(100), fc.constantFrom(undefined, 2), (text, levels, indent) => {
        const json = JSON.stringify(wrapped(text, levels), undefined, indent);
        expect(verdict(json)).toBe(levels > 64 ? 'json.odd' : undefined);
      }),
    );
  });

  it.each([
    ['one string', `"${'x'.repeat(24 * MIB)}"`],
    ['escaped quotes', `"${'\\"'.repeat(12 * MIB)}"`],
    ['backslashes', `"${'\\'.repeat(24 * MIB)}"`],
    ['brackets', '['.repeat(24 * MIB)],
    ['spaces', ' '.repeat(24 * MIB)],
  ])('24 MiB of %s are looked through within seconds', (_what, text) => {
    const bytes = Buffer.from(text);
    const before = process.threadCpuUsage();
    verdict(bytes);
    const { user, system } = process.threadCpuUsage(before);
    // Half a second on an idle machine; what looks at parts again and again takes hours. Of the processor's time: others have it meanwhile.
    expect((user + system) / 1e6).toBeLessThan(5);
  });
});
