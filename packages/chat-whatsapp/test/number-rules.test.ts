import { describe, expect, it } from 'vitest';
import { numberForms, numberRules } from '../src/recipients.ts';

describe('the forms of a number that WhatsApp may know, the likeliest first', () => {
  it.each([
    // Brazil: São Paulo and its neighbours with the ninth digit, the others without.
    ['Brazil, 11, with 9', '5511987654321', ['5511987654321', '551187654321']],
    ['Brazil, 11, without', '551187654321', ['5511987654321', '551187654321']],
    ['Brazil, 28, without', '552887654321', ['5528987654321', '552887654321']],
    ['Brazil, 31, with 9', '5531987654321', ['553187654321', '5531987654321']],
    ['Brazil, 84, without', '558487654321', ['558487654321', '5584987654321']],
    ['Brazil, 85, a number that itself begins with 9', '5585999998888', ['558599998888', '5585999998888']],
    ['Brazil, a landline never got the 9', '551133334444', ['551133334444']],
    // Mexico: 1 after the country code, or not.
    ['Mexico, with 1', '5215512345678', ['5215512345678', '525512345678']],
    ['Mexico, without', '525512345678', ['5215512345678', '525512345678']],
    ['Mexico, too long', '52155123456789', ['52155123456789']],
    // Argentina: 9 after the country code, 15 never.
    ['Argentina, with 9', '5491123456789', ['5491123456789', '541123456789']],
    ['Argentina, without', '541123456789', ['5491123456789', '541123456789']],
    ['Argentina, Buenos Aires with 15', '54111523456789', ['5491123456789', '541123456789']],
    ['Argentina, area of three digits with 15', '54351152345678', ['5493512345678', '543512345678']],
    ['Argentina, area of four digits with 15', '54290115234567', ['5492901234567', '542901234567']],
    // Nowhere else.
    ['Germany', '4915112345678', ['4915112345678']],
    ['United States', '12025550101', ['12025550101']],
    ['a number that only begins like one of them', '5', ['5']],
  ])('%s', (_, digits, forms) => {
    expect(numberForms(digits)).toEqual(forms);
  });

  it('each rule names its source', () => {
    expect(numberRules.length).toBeGreaterThan(0);
    for (const { country, source } of numberRules) {
      expect(source, country).not.toBe('');
    }
  });
});
