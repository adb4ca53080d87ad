/**
 * Takes the pictures of the console for the documentation: a service of its own, a job, a real browser.
 * Writes docs/images/console-light.png, console-dark.png and console-phone.png.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TestService } from '../test/api/api-fixture.ts';
import { startChromium } from '../test/chromium.ts';
import { makeTalk, signIn } from '../test/end-to-end/console-page.ts';
import { ada } from '../test/end-to-end/inbox.ts';
import { until } from '../test/until.ts';

const FOLDER = 'docs/images';

const folder = await mkdtemp(join(tmpdir(), 'soundpost-pictures-'));
const service = await TestService.start({ parts: ['worker', 'gateway'] });
const browser = await startChromium({ width: 1180, height: 790 });
try {
  const page = await browser.context.newPage();
  await signIn(page, service.url, service.key);
  await page.setInputFiles('#file', await makeTalk(folder, 'interview.mp4', 95));
  await page.locator('#upload-text', { hasText: 'Uploaded' }).waitFor();
  await until('the waveform can be trimmed', () => page.locator('[part~="region-handle-right"]').isVisible());
  await page.getByLabel('Start').fill('0:12');
  await page.getByLabel('End', { exact: true }).fill('1:08');
  await page.getByText('Even out the loudness').click();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByLabel('End', { exact: true }).blur();
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: `${FOLDER}/console-phone.png` });
  await page.setViewportSize({ width: 1180, height: 790 });
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
  await page.locator('#job-title').focus();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 300))');
    await page.screenshot({ path: `${FOLDER}/console-${colorScheme}.png` });
  }
} finally {
  await browser.close();
  await service.close();
  await rm(folder, { recursive: true, force: true });
}
