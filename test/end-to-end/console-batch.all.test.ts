// @module-tag chromium
/** Many sources at once at the console, among them broken ones: none vanishes, each says what is wrong with it, and the others go on. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page, Route } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useService } from '../api/api-fixture.ts';
import {
  BROKEN_FILES,
  type Dropped,
  dropping,
  everyFault,
  GOOD_FILES,
  signIn,
  thirtyFiles,
  type Watch,
  watchPage,
} from './console-page.ts';

const service = useService();
const run = promisify(execFile);
let folder = '';
let talk = '';
let files: readonly Dropped[];
let browser: TestBrowser;
let page: Page;
let watch: Watch;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-batch-'));
  files = await thirtyFiles(folder);
  talk = join(folder, 'talk.mp4');
  browser = await startChromium({ width: 1180, height: 800 });
  await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  page = await browser.context.newPage();
  watch = await watchPage(page);
  await signIn(page, service().url, service().key);
});
afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

const row = (name: string) => page.locator('.source-row', { has: page.getByText(name, { exact: true }) });
const heading = (text: string) => page.getByRole('heading', { name: text });
const removeAll = async () => {
  const buttons = page.locator('.source-row .round[aria-label^="Remove"], #chosen-remove');
  while ((await buttons.count()) > 0) await buttons.first().click();
};
const fits = () => page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth');

const drop = (dropped: readonly Dropped[]) => page.evaluate(dropping(dropped));

async function namesInHistory(): Promise<string[]> {
  const { jobs } = (await service().call('GET', '/v1/jobs?limit=100')).body.data;
  return jobs.map(({ source }: { source: { name?: string; url?: string } }) => source.name ?? source.url);
}

describe('30 files, four of them broken', () => {
  it('are uploaded once they are dropped; each has its row, and one of which nothing will come its reason', async () => {
    await drop(files);
    await heading('30 sources, 2 unsupported').waitFor();
    const names = await page.locator('.source-row strong').allInnerTexts();
    expect(names).toEqual([...GOOD_FILES, ...BROKEN_FILES]);
    await row('empty.mp4').getByText('The file is empty').waitFor();
    await row('text.mp4').getByText('not in a known video or audio format').waitFor();
    await page.getByText('28 of 28 files uploaded').waitFor();
    expect(await page.getByRole('group', { name: 'Trim' }).count()).toBe(0);
    expect(await everyFault(page)).toEqual([]);
  });

  it('become jobs: the good ones complete, and a failed one says why in its place', async () => {
    await page.getByRole('button', { name: 'Extract audio' }).click();
    await heading('30 sources: 26 completed, 4 failed').waitFor();
    expect(await page.locator('.source-row').count()).toBe(30);
    expect(await page.locator('.source-row[data-state="completed"]').count()).toBe(26);
    await row('cut off.mp4').getByText('incomplete').waitFor();
    await row('silent.mp4').getByText('No audio').waitFor();
    await row('text.mp4').getByText('not in a known video or audio format').waitFor();
    expect((await namesInHistory()).toSorted()).toEqual(
      [...GOOD_FILES, 'cut off.mp4', 'silent.mp4'].toSorted(),
    );
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      expect(await everyFault(page)).toEqual([]);
    }
  });

  it('fit a phone of 320 pixels without moving sideways, and make room for another', async () => {
    await page.setViewportSize({ width: 320, height: 700 });
    expect(await fits()).toBe(true);
    await page.getByRole('button', { name: 'Start another' }).click();
    await page.locator('#drop').waitFor();
    // This service has no transcriber.
    expect(await page.locator('#subtitles').isDisabled()).toBe(true);
    expect(await page.locator('.source-row').count()).toBe(0);
    expect(await fits()).toBe(true);
    expect(await everyFault(page)).toEqual([]);
    await page.setViewportSize({ width: 1180, height: 800 });
  });
});

describe('addresses', () => {
  const paste = async (text: string) => {
    await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
    await page.getByLabel('Video URL').focus();
    await page.keyboard.press('Control+V');
  };

  it('several lines make several; what is none stays in the field, and Enter adds one more', async () => {
    const urls = [1, 2].map((nth) => service().outside.file(`pasted-${nth}.mp4`, talk));
    const [first = '', second = ''] = await Promise.all(urls);
    await paste(`${first}\n${second}\nno-address.example\n`);
    await row(second).waitFor();
    expect(await page.locator('.source-row strong').allInnerTexts()).toEqual([first, second]);
    await page.getByRole('alert').getByText('A URL starts with https://').waitFor();
    expect(await page.getByLabel('Video URL').inputValue()).toBe('no-address.example');
    await page.getByLabel('Video URL').fill('http://10.0.0.1/private.mp4');
    await page.keyboard.press('Enter');
    await heading('3 sources').waitFor();
  });

  it('one that the service refuses has its reason, and holds up no other', async () => {
    await page.getByRole('button', { name: 'Extract audio' }).click();
    await heading('3 sources: 2 completed, 1 failed').waitFor();
    await row('http://10.0.0.1/private.mp4')
      .getByText(/^The address is not allowed: /)
      .waitFor();
    await page.getByRole('button', { name: 'Start another' }).click();
  });

  it('are copied as a command that does the same, without the key', async () => {
    const url = await service().outside.file("it's.mp4", talk);
    await page.getByLabel('Video URL').fill(url);
    await page.locator('#formats').getByText('Opus', { exact: true }).click();
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const command = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(command).not.toContain(service().key);
    const env = { PATH: process.env.PATH, SOUNDPOST_KEY: service().key };
    const { stdout } = await run('sh', ['-c', command], { env });
    const { jobId } = JSON.parse(stdout).data;
    expect(await service().ended(jobId)).toMatchObject({ status: 'completed', output: { format: 'opus' } });
    await page.getByLabel('Video URL').fill('');
  });
});

describe('uploads', () => {
  it('three go at a time; a paused one makes room; after a reload those that had not ended are named', async () => {
    const held: Route[] = [];
    await page.route('**/v1/uploads', (route) => held.push(route));
    const bytes = await readFile(talk);
    const names = ['a.mp4', 'b.mp4', 'c.mp4', 'd.mp4', 'e.mp4'];
    await drop(names.map((name) => ({ name, bytes: Buffer.concat([bytes, Buffer.from(name)]) })));
    await until('three are begun', () => held.length === 3);
    expect(await page.locator('[data-state="queued"]').count()).toBe(2);
    await page.getByRole('button', { name: 'Pause: b.mp4' }).click();
    await until('a fourth is begun', () => held.length === 4);
    await row('b.mp4').getByText('Paused at 0 %').waitFor();
    await page.reload();
    await page
      .getByText(
        'The uploads of a.mp4, b.mp4, c.mp4 and 2 more were interrupted. Choose the same files again',
      )
      .waitFor();
    await page.unroute('**/v1/uploads');
    await drop([{ name: 'a.mp4', bytes }]);
    await page.locator('#upload-text', { hasText: 'Uploaded' }).waitFor();
    await removeAll();
  });

  it('one that cannot be reached for long is tried again by its button, also after the others became jobs', async () => {
    let isAway = true;
    await page.route('**/v1/uploads', (route) =>
      isAway && route.request().headers()['upload-length'] === '77'
        ? route.fulfill({ status: 429, headers: { 'Retry-After': '600' }, body: '{}' })
        : route.continue(),
    );
    const bytes = await readFile(talk);
    // Of 77 bytes nothing will come in the end; what is looked at is the way there.
    await drop([
      { name: 'early.mp4', bytes },
      { name: 'late.mp4', bytes: bytes.subarray(0, 77) },
    ]);
    await row('late.mp4').getByText('Stopped at 0 %').waitFor();
    await page.getByRole('button', { name: 'Extract audio' }).click();
    await heading('2 sources: 1 completed, 1 pending').waitFor();
    isAway = false;
    await page.getByRole('button', { name: 'Retry: late.mp4' }).click();
    await heading('2 sources: 1 completed, 1 failed').waitFor();
    await page.unroute('**/v1/uploads');
    await page.getByRole('button', { name: 'Start another' }).click();
  });
});

describe('the waveform of one file', () => {
  it('a drag over it chooses that part', async () => {
    await page.setInputFiles('#file', talk);
    const handle = page.locator('#trim-drawing [part~="region-handle-right"]');
    await until('the part is drawn', () => handle.boundingBox());
    const wave = await until('the drawing is there', () => page.locator('#trim-drawing').boundingBox());
    const middle = wave.y + wave.height / 2;
    await page.mouse.move(wave.x + wave.width * 0.75, middle);
    await page.mouse.down();
    await page.mouse.move(wave.x + wave.width * 0.25, middle, { steps: 8 });
    await page.mouse.up();
    expect(await page.getByLabel('Start').inputValue()).toMatch(/^0:00\.[4-7]$/);
    expect(await page.getByLabel('End', { exact: true }).inputValue()).toMatch(/^0:01\.[4-8]$/);
    const right = await handle.boundingBox();
    expect(right?.x).toBeCloseTo(wave.x + wave.width * 0.75, -2);
    await removeAll();
  });

  it('what the browser cannot play is said, and its fields are there', async () => {
    await page.setInputFiles('#file', join(folder, 'text.mp4'));
    await page.locator('#trim-note', { hasText: 'This browser cannot play the file' }).waitFor();
    expect(await page.getByLabel('Start').isVisible()).toBe(true);
    await removeAll();
  });
});

it('who signs out leaves no name of a file', async () => {
  await page.setInputFiles('#file', talk);
  await page.locator('#upload-text', { hasText: 'Uploaded' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  const left = await page.evaluate<string>('JSON.stringify({ ...sessionStorage, ...localStorage })');
  expect(left).not.toMatch(/\.mp4/);
  await page.getByLabel('API key').fill(service().key);
  await page.keyboard.press('Enter');
  await page.locator('#drop').waitFor();
  expect(await page.locator('.source-row').count()).toBe(0);
});

it('nothing of it was an error of the page', () => {
  expect(watch.complaints).toEqual([]);
});
