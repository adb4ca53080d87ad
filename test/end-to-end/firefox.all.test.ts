// @module-tag firefox
/** The pages in Firefox: that they work there at all, not every way that Chromium has been taken. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core';
import { startFirefox, type TestFirefox } from 'soundpost-testing/firefox';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GATEWAY_API_KEY, useClips, useService } from '../api/api-fixture.ts';
import { BROKEN_FILES, dropping, GOOD_FILES, thirtyFiles } from './console-page.ts';
import { ada } from './inbox.ts';

const PATIENCE_MS = 60_000;

const service = useService({ parts: ['worker', 'gateway'] });
const clips = useClips('tone.mp4');
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-firefox-files-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const textOf = (page: Page): Promise<string> => page.evaluate<[], () => string>('document.body.innerText');

async function shows(page: Page, ...texts: readonly string[]): Promise<void> {
  let shown = '';
  await until(
    `the page shows ${texts.join(' and ')}`,
    async () => {
      shown = await textOf(page);
      return texts.every((text) => shown.includes(text));
    },
    PATIENCE_MS,
  ).catch((error: unknown) => {
    throw new Error(`${error}; it shows:\n${shown}`);
  });
}

describe('a page whose scripts run', () => {
  let firefox: TestFirefox;
  let page: Page;
  const complaints: string[] = [];

  async function open(address: string): Promise<Page> {
    const opened = await firefox.newPage();
    opened.setDefaultTimeout(PATIENCE_MS);
    opened.on('pageerror', (error) => complaints.push(String(error)));
    await opened.goto(address);
    return opened;
  }

  beforeAll(async () => {
    firefox = await startFirefox({ 'media.autoplay.default': 0, 'media.volume_scale': '0.0' });
  });
  afterAll(() => firefox?.close());

  it('tells at the console what is wrong with a key, and takes a right one', async () => {
    page = await open(service().url);
    await page.locator('#key').fill(`sp_aaaaaaaa_${'a'.repeat(40)}`);
    await page.keyboard.press('Enter');
    await shows(page, 'The service does not accept this key');
    await page.locator('#key').fill(service().key);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#new-title');
  });

  it('makes jobs of 30 files that are dropped, and says by name why one has failed', async () => {
    await page.evaluate(dropping(await thirtyFiles(folder)));
    await shows(page, '30 sources, 2 unsupported', '28 of 28 files uploaded');
    await page.locator('#extract').click();
    await shows(page, '30 sources: 26 completed, 4 failed');
    const rows = await page.$$eval('[data-source]', (found) =>
      found.map((row) => [row.querySelector('.source-what > :first-child')?.textContent, row.textContent]),
    );
    const said = new Map(rows.map(([name, text]) => [name, text]));
    expect([...said.keys()]).toEqual([...GOOD_FILES, ...BROKEN_FILES]);
    expect(said.get('empty.mp4')).toContain('The file is empty');
    expect(said.get('text.mp4')).toContain('not in a known video or audio format');
    expect(said.get('cut off.mp4')).toContain('incomplete');
    expect(said.get('silent.mp4')).toContain('No audio');
  });

  it('shows in the open history a job that somebody submits elsewhere', async () => {
    const url = await service().outside.file('elsewhere.mp4', clips('tone.mp4'));
    await page.locator('a[data-view="history"]').click();
    await page.waitForSelector('[data-job]');
    const jobId = await service().submit({ source: { type: 'url', url }, output: { format: 'mp3' } });
    await page.waitForSelector(`[data-job="${jobId}"][data-status="completed"]`);
  });

  it('shows a chat in the inbox', async () => {
    const sent = await service().gateway('POST', '/message/sendText/main', {
      number: ada.number,
      text: 'On my way, says Firefox.',
    });
    const inbox = await open(`${service().gatewayUrl}/inbox`);
    await inbox.locator('#key').fill(GATEWAY_API_KEY);
    await inbox.keyboard.press('Enter');
    await shows(inbox, 'Ada Lovelace', 'Live');
    await inbox.locator(`button[data-jid="${ada.jid}"]`).click();
    await inbox.waitForSelector(`[data-message-id="${sent.body.key.id}"][data-status="READ"]`);
    await shows(inbox, 'On my way, says Firefox.');
  });

  it('nothing of it was an error of a page', () => {
    expect(complaints).toEqual([]);
  });
});

describe('a page whose scripts are blocked', () => {
  let firefox: TestFirefox;

  beforeAll(async () => {
    firefox = await startFirefox({ 'javascript.enabled': false });
  });
  afterAll(() => firefox?.close());

  it.each([
    ['the console', () => service().url, 'The console did not start. It needs JavaScript'],
    ['the inbox', () => `${service().gatewayUrl}/inbox`, 'The voice inbox did not start.'],
    ['the reference', () => `${service().url}/docs`, 'The reference did not start. It needs JavaScript'],
    ['the gateway’s', () => `${service().gatewayUrl}/docs`, 'The OpenAPI document needs no script.'],
  ])('%s says so', async (_page, address, text) => {
    const page = await firefox.newPage();
    await page.goto(address());
    await shows(page, text);
    await page.close();
  });
});
