/** The login against the example of RFC 5802, 5, and what of a server's challenge is refused. */
import { expect, it } from 'vitest';
import { Scram } from '../src/scram.ts';

const credentials = { username: 'user', password: 'pencil' };
const SALT = 'QSXCR+Q6sek8bf92';

async function begun(): Promise<{ scram: Scram; nonce: string; first: string }> {
  const scram = new Scram();
  const first = await scram.response(credentials);
  return { scram, nonce: /r=(.+)$/.exec(first)?.[1] ?? '', first };
}

it('answers as RFC 5802 has it', async () => {
  const scram = new Scram('fyko+d2lbbFgONRv9qkxdawL');
  expect(await scram.response(credentials)).toBe('n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL');
  scram.challenge(`r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=${SALT},i=4096`);
  expect(await scram.response(credentials)).toBe(
    'c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=',
  );
});

it('takes a nonce of its own for each login', async () => {
  expect((await begun()).nonce).not.toBe((await begun()).nonce);
});

it('writes a name with what means something else by its code', async () => {
  expect(await new Scram('x').response({ ...credentials, username: 'a=b,c' })).toBe('n,,n=a=3Db=2Cc,r=x');
});

it.for([
  ['a nonce of another login', () => `r=else,s=${SALT},i=4096`],
  ['no nonce of the server', (nonce: string) => `r=${nonce},s=${SALT},i=4096`],
  ['more rounds than anybody needs', (nonce: string) => `r=${nonce}x,s=${SALT},i=9999999`],
  ['no rounds', (nonce: string) => `r=${nonce}x,s=${SALT},i=0`],
  ['an extension that must be understood', (nonce: string) => `m=ext,r=${nonce}x,s=${SALT},i=4096`],
  ['nothing of it', () => 'x'],
] as const)('refuses %s', async ([, challenge]) => {
  const { scram, nonce } = await begun();
  scram.challenge(challenge(nonce));
  await expect(scram.response(credentials)).rejects.toThrow(/RFC 5802/);
});
