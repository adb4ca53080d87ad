// @module-tag chromium
/**
 * Takes the pictures of the console that README.md and docs/console.md show, on a service of its own: `npm run pictures` writes them. With --all they go to a
 * temporary folder, so that the way to them stays walkable; what is on the way is tested in console.test.ts.
 */
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useService } from '../api/api-fixture.ts';
import { isDrawn, makeTalk, signIn } from './console-page.ts';
import { ada } from './inbox.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');
const isWriting = process.env.PICTURES === 'write';
const DESKTOP = { width: 1180, height: 790 };
const PHONE = { width: 390, height: 844 };

const service = useService({ parts: ['worker', 'gateway'] });
let folder = '';
let browser: TestBrowser;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-pictures-'));
  browser = await startChromium(DESKTOP);
});
afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

/** As they stand in the header of a PNG (ISO/IEC 15948, 11.2.1). */
async function sizeOf(picture: string): Promise<{ width: number; height: number }> {
  const bytes = await readFile(picture);
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

it('a new extraction on a phone, and a finished job in light and dark', async () => {
  const picture = (name: string): string => join(folder, `console-${name}.png`);
  const page = await browser.context.newPage();
  await signIn(page, service().url, service().key);
  await page.setInputFiles('#file', await makeTalk(folder, 'interview.mp4', 95));
  await page.locator('#upload-text', { hasText: 'Uploaded' }).waitFor();
  await until('the waveform is drawn', () => isDrawn(page, '#trim-drawing'));
  await page.getByLabel('Start').fill('0:12');
  await page.getByLabel('End', { exact: true }).fill('1:08');
  await page.getByText('Even out the loudness').click();
  await page.setViewportSize(PHONE);
  await page.getByLabel('End', { exact: true }).blur();
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: picture('phone') });

  await page.setViewportSize(DESKTOP);
  await page.getByRole('button', { name: 'Extract the audio' }).click();
  await page.locator('#job-status', { hasText: 'Completed' }).waitFor();
  await until(
    'an instance is proposed',
    async () => (await page.getByLabel('From instance').inputValue()) !== '',
  );
  await page.getByLabel('To', { exact: true }).fill(ada.number);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#send-status', { hasText: 'Delivered' }).waitFor();
  // In the middle of it: what was heard and what is to come differ in colour.
  await page.locator('#player-position').fill('21');
  await until('the waveform is drawn', () => isDrawn(page, '#player-drawing'));
  await until('it is there, too', async () => {
    const heard = await page.locator('#player-drawing [part~="progress"]').boundingBox();
    return (heard?.width ?? 0) > 100;
  });
  await page.locator('#job-title').focus();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.screenshot({ path: picture(colorScheme), animations: 'disabled' });
  }

  expect(await sizeOf(picture('phone'))).toEqual(PHONE);
  expect(await sizeOf(picture('light'))).toEqual(DESKTOP);
  expect(await readFile(picture('dark'))).not.toEqual(await readFile(picture('light')));
  for (const name of isWriting ? ['phone', 'light', 'dark'] : []) {
    await copyFile(picture(name), join(IMAGES, `console-${name}.png`));
  }
}, 120_000);
