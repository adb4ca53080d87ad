// @module-tag chromium
/**
 * Takes the pictures of the console that README.md and docs/console.md show, on a service of its own: `npm run pictures` writes them. With --all they go to a
 * temporary folder, so that the way to them stays walkable; what is on the way is tested in console.test.ts.
 */
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { ffmpeg } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useService } from '../api/api-fixture.ts';
import { sendJson, startTranscriber } from '../followups/transcripts/transcriber-stub.ts';
import { isDrawn, makeTalk, signIn } from './console-page.ts';
import { ada } from './inbox.ts';
import { keepJobs } from './kept-jobs.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');
const isWriting = process.env.PICTURES === 'write';
const DESKTOP = { width: 1180, height: 790 };
const PHONE = { width: 390, height: 844 };

const transcriber = await startTranscriber();
const service = useService({
  parts: ['worker', 'gateway'],
  names: { 'cdn.example': ['127.0.0.1'], 'media.example': ['127.0.0.1'] },
  environment: { TRANSCRIBER_URL: transcriber.url },
});
let folder = '';
let browser: TestBrowser;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-pictures-'));
  browser = await startChromium(DESKTOP);
});
afterAll(async () => {
  await browser?.close();
  await transcriber.close();
  await rm(folder, { recursive: true, force: true });
});

const picture = (name: string): string => join(folder, `console-${name}.png`);

async function keep(...names: readonly string[]): Promise<void> {
  for (const name of isWriting ? names : []) {
    await copyFile(picture(name), join(IMAGES, `console-${name}.png`));
  }
}

/** As they stand in the header of a PNG (ISO/IEC 15948, 11.2.1). */
async function sizeOf(picture: string): Promise<{ width: number; height: number }> {
  const bytes = await readFile(picture);
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

it('a new extraction on a phone, and a finished job in light and dark', async () => {
  const page = await browser.context.newPage();
  await signIn(page, service().url, service().key);
  await page.setInputFiles('#file', await makeTalk(folder, 'interview.mp4', 95));
  await page.locator('#upload-text', { hasText: 'Uploaded' }).waitFor();
  await until('the waveform is drawn', () => isDrawn(page, '#trim-drawing'));
  await page.getByLabel('Start').fill('0:12');
  await page.getByLabel('End', { exact: true }).fill('1:08');
  await page.locator('#loudness-pills').getByText('−16', { exact: true }).click();
  await page.setViewportSize(PHONE);
  await page.getByLabel('End', { exact: true }).blur();
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: picture('phone') });

  await page.setViewportSize(DESKTOP);
  await page.getByRole('button', { name: 'Extract audio' }).click();
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
  await keep('phone', 'light', 'dark');
}, 120_000);

const SPOKEN = [
  'Welcome to the harbour.',
  'The pilots leave before the light does, and come back with the tide.',
  'Everything in the harbour waits for them: cranes, tugs, and the ferry to the islands.',
  'This is how a night there sounds.',
];

it('daily work: the list of jobs, a retry of many, the tracks of a film, a transcript', async () => {
  const key = await service().newKey();
  await keepJobs(service(), { key });
  transcriber.answer = (response) => {
    const segments = SPOKEN.map((text, id) => ({ id, start: id * 8, end: id * 8 + 7, text }));
    sendJson(response, 200, { language: 'english', duration: 32, text: '', segments });
  };
  const page = await browser.context.newPage();
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.context().clearCookies();
  await page.goto(service().url);
  await page.evaluate('localStorage.clear()');
  await page.setViewportSize(DESKTOP);
  await signIn(page, `${service().url}/?daily`, key);
  const shoot = (name: string) => page.screenshot({ path: picture(name), animations: 'disabled' });

  const film = join(folder, 'harbour at night.mkv');
  const talk = await makeTalk(folder, 'harbour.mp4', 34);
  const maps = ['0:v', '0:a', '0:a', '0:a'].flatMap((map) => ['-map', map]);
  const languages = ['eng', 'spa', 'fra'].flatMap((code, nth) => [
    `-metadata:s:a:${nth}`,
    `language=${code}`,
  ]);
  await ffmpeg('-v', 'error', '-i', talk, ...maps, '-c', 'copy', ...languages, film);
  await page.setInputFiles('#file', film);
  await page.getByRole('button', { name: 'Show tracks' }).click();
  await page.getByRole('radio', { name: /^Spanish/ }).check();
  await page.locator('#tracks').scrollIntoViewIfNeeded();
  await shoot('tracks');

  await page.getByText('More options', { exact: true }).click();
  await page.getByRole('combobox', { name: 'Transcript' }).selectOption('Subtitles (WebVTT)');
  await page.getByRole('button', { name: 'Extract audio' }).click();
  await page.getByRole('searchbox', { name: 'Find in the transcript' }).fill('harbour');
  await page.locator('#transcript-hits', { hasText: '1 of 2' }).waitFor();
  await until('the waveform is drawn', () => isDrawn(page, '#player-drawing'));
  await page.evaluate(`document.querySelector('#job-title').focus()`);
  await shoot('transcript');

  await page.evaluate(`location.hash = '#/jobs'`);
  await page.locator('.row').first().waitFor();
  await shoot('history');
  await page.setViewportSize(PHONE);
  await shoot('history-phone');

  await page.setViewportSize(DESKTOP);
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  await page.getByText('50 of 60 jobs').waitFor();
  await page.getByRole('button', { name: 'Select all 60' }).click();
  await page.getByRole('button', { name: 'Retry 60' }).click();
  await page.getByRole('button', { name: 'Retry 60 jobs' }).waitFor();
  await shoot('retry');
  await keep('tracks', 'transcript', 'history', 'history-phone', 'retry');
  await page.close();
}, 180_000);
