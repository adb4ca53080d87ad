/** Recipients as callers write them, and as they copy them from elsewhere (decisions B "number"). */
import { describe, expect, it } from 'vitest';
import { mentionedJid, parseAddress } from '../src/address.ts';

const read = (text: string): string => parseAddress(text, 'number').digits;

describe('a number is read over', () => {
  it.each([
    ['punctuation', '+1 (202) 555-0101'],
    ['dots', '1.202.555.0101'],
    ['no-break spaces', '+1\u00a0202\u202f555\u00a00101'],
    ['an embedding, as phones copy it', '\u202a+1 202 555 0101\u202c'],
    ['an override', '\u202d12025550101\u202c'],
    ['marks', '\u200e12025550101\u200f'],
    ['an Arabic mark', '\u061c12025550101'],
    ['isolates', '\u206612025550101\u2069'],
    ['a mark and a no-break space before it', '\u200e\u00a012025550101'],
    ['a JID', '\u202a12025550101@s.whatsapp.net\u202c'],
  ])('%s', (_what, text) => {
    expect(read(text)).toBe('12025550101');
  });

  it.each(['\u202a\u202c', '...', 'Ada', '1202555010l'])('but not %j', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'bad_request' }));
  });

  it('nor the dots in the name of a JID', () => {
    expect(read('1.2@chat.example')).toBe('');
  });
});

it.each(['120363000000000001@newsletter', 'status@broadcast', 'Status@Broadcast', '4915100000001@broadcast'])(
  '%s is not supported',
  (text) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'unsupported', message: expect.stringMatching(/^number: /) }),
    );
  },
);

describe('a mention', () => {
  const own = '99900000001@people.loopback';

  it.each([
    ['12025550101', '12025550101@people.loopback'],
    ['+1 202 555-0101', '12025550101@people.loopback'],
    ['12025550101@s.whatsapp.net', '12025550101@people.loopback'],
    ['12025550101@people.loopback', '12025550101@people.loopback'],
    ['ada@chat.example', 'ada@chat.example'],
    ['room@muc.example/Ada', 'room@muc.example/Ada'],
  ])('%s is %s', (text, jid) => {
    expect(mentionedJid(text, own)).toBe(jid);
  });

  it('stays as it is while the network is not known', () => {
    expect(mentionedJid('12025550101', '')).toBe('12025550101');
  });
});
