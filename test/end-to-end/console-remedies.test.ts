/** What the page says of the failure of a job, and of an instance that is not connected: each cause that can be named has a remedy of its own, which holds with the button below it. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { disconnectReasons } from 'soundpost-chat-whatsapp/disconnect-reasons';
import { type ErrorCode, jobFailureCodes } from 'soundpost-contract/errors';
import type { Job } from 'soundpost-contract/job';
import { describe, expect, it } from 'vitest';
import { troubleOf } from '../../web/console/views/instances/trouble.ts';
import { remedyFor } from '../../web/console/views/job/remedy.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDERS = ['packages/media/src', 'packages/outbound/src', 'src/worker'];
/** A failure that is made there, and its details: the last of its texts. */
const MADE =
  /(?:MediaFailure|OutboundFailed|blameInput|unusable|unsupported)\(\s*(?:(?:error|code|'[A-Z_a-z-]+'),\s*){0,2}(['`])([^'`]{8,})\1/g;
/** Of what is sent to a receiver or a destination, of a file that no source can be, and what the details of the job say in other words. */
const OF_NO_SOURCE = [
  'the file does not have its declared length',
  'not a regular file',
  'the server answered with status 7',
];

const failed = (code: ErrorCode, told: string, type: 'url' | 'upload' = 'url'): Job =>
  ({ error: { code, message: 'It failed.', details: told }, source: { type } }) as Job;

/** As the worker words them, each variable part as a number. */
function wordings(): string[] {
  const files = FOLDERS.flatMap((folder) => globSync(`${ROOT}/${folder}/**/*.ts`));
  const found = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(MADE)].map(([, , text = '']) =>
      text.replaceAll(/\$\{[^}]*\}/g, '7'),
    ),
  );
  return [...new Set(found)].filter((text) => text.includes(' ') && !OF_NO_SOURCE.includes(text));
}

describe('the remedy of a failed job', () => {
  it('is one of its own for each cause that the worker can name', () => {
    const told = wordings();
    expect(told.length).toBeGreaterThan(60);
    const general = jobFailureCodes.map((code) => remedyFor(failed(code, 'nobody knows')).remedy);
    const without = told.filter((text) =>
      general.includes(remedyFor(failed('DOWNLOAD_FAILED', text)).remedy),
    );
    expect(without).toEqual([]);
  });

  it('is there for each code, whatever the cause', () => {
    for (const code of jobFailureCodes) expect(remedyFor(failed(code, 'nobody knows')).remedy).not.toBe('');
  });

  it('does not tell to try again where that does not help, nor offers it', () => {
    const rows: [ErrorCode, string, 'url' | 'upload'][] = [
      ['DOWNLOAD_FAILED', 'the upload has expired', 'upload'],
      ['DOWNLOAD_FAILED', 'the address is not allowed', 'url'],
      ['DOWNLOAD_FAILED', 'the file is larger than allowed', 'url'],
      ['EXTRACTION_FAILED', 'no audio stream', 'url'],
      ['INVALID_VIDEO', 'the file is not in a known container', 'upload'],
    ];
    for (const [code, text, type] of rows) {
      const { remedy, mayRetry } = remedyFor(failed(code, text, type));
      expect({ text, mayRetry, says: /try again/i.test(remedy) }).toEqual({
        text,
        mayRetry: false,
        says: false,
      });
    }
  });
});

describe('of an instance on WhatsApp that is not connected', () => {
  const unknown = troubleOf('nobody knows');
  const ofEach = disconnectReasons.map(({ meaning, consequence }) => ({ meaning, consequence }));

  it.each(ofEach)('what it means and what helps is said: $meaning', ({ meaning, consequence }) => {
    const [whilePaired, whilePairing] = [troubleOf(meaning), troubleOf(`not paired: ${meaning}`)];
    expect(whilePaired).not.toEqual(unknown);
    expect(whilePairing).not.toEqual(unknown);
    // The gateway reconnects by itself where there is a pairing, and only there.
    const isTriedAgain = consequence === 'retry' || consequence === 'restart';
    expect(/automatically|few minutes/.test(whilePaired.remedy)).toBe(isTriedAgain);
    expect(whilePairing.remedy).not.toMatch(/automatically/);
    // A new picture mends what is between the phone and WhatsApp, and not the gateway or a ban that ends.
    expect(whilePairing.lasts === true).toBe(consequence === 'stay' || consequence === 'renew');
  });
});

describe('of an instance on Telegram or the Cloud API that is not connected', () => {
  it.each([
    ['chat-telegram/src/failure.ts', 'Telegram does not accept the bot token'],
    ['chat-telegram/src/connection.ts', 'another program receives the updates of this bot;'],
    ['chat-telegram/src/connection.ts', 'another program receives the updates of this bot by a webhook'],
    ['chat-telegram/src/api.ts', 'Telegram cannot be reached'],
    ['chat-telegram/src/api.ts', 'Telegram did not answer'],
    ['chat-whatsapp-cloud/src/refusals.ts', 'the access token has expired'],
    ['chat-whatsapp-cloud/src/refusals.ts', 'the access token is not valid'],
  ])('what it means and what helps is said: %s, %s', (file, told) => {
    expect(readFileSync(join(ROOT, 'packages', file), 'utf8')).toContain(told);
    expect(troubleOf(told)).not.toEqual(troubleOf('nobody knows'));
  });

  it('a refusal of Meta is known by its code', () => {
    expect(troubleOf('the business number is gone; check phoneNumberId (33)').meaning).toMatch(/Meta/);
  });
});
