import { disconnectReasons } from 'soundpost-chat-whatsapp/disconnect-reasons';
import { INSTALL_COMMAND } from 'soundpost-chat-whatsapp/library';
import { describe, expect, it } from 'vitest';
import { codeBlocks, readPage } from '../../docs/markdown.ts';

const page = 'docs/whatsapp.md';

describe(page, () => {
  it('has the command that an error names', () => {
    expect(codeBlocks(page).map(({ text }) => text.trim())).toContain(INSTALL_COMMAND);
  });

  it('says of every end of a connection what follows from it', () => {
    const told = [...readPage(page).matchAll(/^\| (\d{3}) \| .* \| (.*) \|$/gm)].map(
      ([, code, what = '']) => [Number(code), what.split(';')[0]],
    );
    const words = {
      forget: 'deletes the session',
      stay: 'stays away',
      renew: 'connects again by another version',
      retry: 'connects again',
      restart: 'connects again, at once',
    };
    expect(told).toEqual(disconnectReasons.map(({ code, consequence }) => [code, words[consequence]]));
  });
});
