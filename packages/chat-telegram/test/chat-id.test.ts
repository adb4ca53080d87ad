import { meansJid, parseAddress } from 'soundpost-chat/address';
import { describe, expect, it } from 'vitest';
import { parseNetworkId, targetOf } from '../src/chat-id.ts';

const target = (text: string) => targetOf(parseAddress(text, 'number'), 'number');

describe('the chat that a caller names', () => {
  it.for([
    ['123456789', 123456789],
    ['+1 (23) 456-789', 123456789],
    ['123456789@telegram', 123456789],
    ['123456789@s.whatsapp.net', 123456789],
    ['-4012345678', -4012345678],
    ['-1001234567890@telegram', -1001234567890],
    ['-1001234567890@g.us', -1001234567890],
  ] as const)('%s is the id %d, with its sign', ([text, id]) => {
    expect(target(text)).toEqual({ id });
  });

  it('is a public group or channel by its @name', () => {
    expect(target('@soundpost_news')).toEqual({ name: '@soundpost_news' });
  });

  it.for(['ada@telegram', '123@people.loopback', '0', '@me', '99999999999999999999'])(
    '%s is no chat on Telegram',
    (text) => {
      expect(() => target(text)).toThrow(/must be the id of a chat on Telegram/);
    },
  );

  it('is found in lists by its id only with the sign', () => {
    const [group, person] = ['-401@telegram', '401@telegram'];
    expect(['-401', group, '-401@g.us'].map((text) => meansJid(text, group, true))).toEqual([
      true,
      true,
      true,
    ]);
    expect([meansJid('401', group, true), meansJid('-401', person, false)]).toEqual([false, false]);
    expect(meansJid('401', person, false)).toBe(true);
  });
});

it('an id of a message names its chat; an id of our own does not', () => {
  expect(parseNetworkId('-1001234567890_77')).toEqual({ chatId: -1001234567890, messageId: 77 });
  expect(parseNetworkId('7F0C2A9BE41D47839C4E2B7D1A6F0E35')).toBeUndefined();
});
