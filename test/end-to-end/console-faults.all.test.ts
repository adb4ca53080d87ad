// @module-tag chromium
/** The console where something goes wrong: what was typed, what was chosen, the service, or the moment. The way that goes well is console.test.ts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { ffmpeg } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useService } from '../api/api-fixture.ts';
import { makeTalk, signIn, type Watch, watchPage } from './console-page.ts';

const MARKUP = '<img src=x onerror=alert(1)>';

const service = useService();
let folder = '';
let talk = '';
let browser: TestBrowser;
let page: Page;
let watch: Watch;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-console-faults-'));
  talk = await makeTalk(folder, `${MARKUP}.mp4`, 2);
  browser = await startChromium({ width: 1180, height: 800 });
  page = await browser.context.newPage();
  watch = await watchPage(page);
  await page.goto(service().url);
});
afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

const go = (address: string) => page.evaluate(`location.hash = ${JSON.stringify(address)}`);
const isOffline = (offline: boolean) => browser.context.setOffline(offline);
const extract = () => page.locator('#extract').click({ force: true });
const url = (name: string) => ({ source: { type: 'url', url: name }, output: { format: 'mp3' } });

describe('what was typed or chosen', () => {
  it('a key with a sign that no header carries is told like a wrong one', async () => {
    await page.getByLabel('API key').fill('sp_…');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('The service does not accept this key').waitFor();
    await signIn(page, service().url, service().key);
  });

  it('an address that names no view shows the first one, also a name that every object has', async () => {
    await go('#/jobs');
    await page.locator('#view-history').waitFor();
    await go('#/constructor');
    await page.locator('#view-new').waitFor();
  });

  it('a file that the service will not have is not promised to go on, and holds nothing up', async () => {
    const text = join(folder, 'text.mp4');
    await writeFile(text, 'no video at all\n'.repeat(100));
    await page.setInputFiles('#file', text);
    await extract();
    const alert = page.locator('#source-error', { hasText: 'not in a known video or audio format' });
    await alert.waitFor();
    expect(await alert.textContent()).not.toContain('Retry');
    // Where the refusal comes before the click, the button has never been disabled.
    await page.locator('#extract:not([aria-disabled="true"])').waitFor();
    await extract();
    expect(await page.locator('#extract').getAttribute('aria-disabled')).not.toBe('true');
    await page.getByRole('button', { name: 'Change source' }).click();
  });

  it('a sound of hours gets a line: decoded it would not fit into a tab', async () => {
    const hours = join(folder, 'hours.wav');
    await ffmpeg(
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'anullsrc=r=8000:cl=mono',
      '-t',
      '1900',
      '-c:a',
      'pcm_u8',
      hours,
    );
    await page.setInputFiles('#file', hours);
    await page.locator('#trim-note', { hasText: '30 minutes' }).waitFor();
    await page.getByRole('button', { name: 'Change source' }).click();
  });

  it('a name with markup in it is a text everywhere', async () => {
    await page.setInputFiles('#file', talk);
    await page.locator('#chosen-name', { hasText: MARKUP }).waitFor();
    await extract();
    await page.getByRole('heading', { name: `${MARKUP}.mp3` }).waitFor();
    await page.locator('#job-status', { hasText: 'Completed' }).waitFor();
    await go('#/jobs');
    await page.locator('.row', { hasText: MARKUP }).waitFor();
    expect(await page.locator('img[src="x"]').count()).toBe(0);
  });
});

describe('the service, or the moment', () => {
  it('a job and the history that are opened while the service is away say so, and come by themselves', async () => {
    const [job] = (await service().call('GET', '/v1/jobs')).body.data.jobs;
    await isOffline(true);
    await go(`#/jobs/${job.jobId}`);
    await page.locator('#job-error', { hasText: 'does not respond' }).waitFor();
    await isOffline(false);
    await page.locator('#job-status', { hasText: 'Completed' }).waitFor();
    await page.locator('#job-error:empty').waitFor({ state: 'attached' });

    await isOffline(true);
    await go('#/jobs');
    await page.locator('#history-error', { hasText: 'does not respond' }).waitFor();
    await isOffline(false);
    await page.locator('#history-error:empty').waitFor({ state: 'attached' });
    await page.locator(`[data-job="${job.jobId}"]`).waitFor();
  });

  it('who leaves while a job waits for its upload is not fetched back, and who signs out leaves nothing that waits', async () => {
    await go('#/');
    await isOffline(true);
    await page.setInputFiles('#file', talk);
    await extract();
    await page.getByText('The job starts when the upload is complete.').first().waitFor();
    // What is chosen until then counts.
    await page.locator('#formats').getByText('FLAC', { exact: true }).click();
    await go('#/jobs');
    await page.locator('#view-history').waitFor();
    await isOffline(false);
    await page.locator('#announcements', { hasText: 'Job submitted' }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/jobs');
    const { body } = await service().call('GET', '/v1/jobs?limit=1');
    expect(body.data.jobs[0].output.format).toBe('flac');

    await go('#/');
    await isOffline(true);
    await page.setInputFiles('#file', await makeTalk(folder, 'second.mp4', 1));
    await extract();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await isOffline(false);
    await page.getByLabel('API key').fill(service().key);
    await page.keyboard.press('Enter');
    await page.getByLabel('Video URL').fill('http://10.0.0.1/private.mp4');
    await page.keyboard.press('Enter');
    await page.locator('#new-error', { hasText: 'the address is not allowed' }).waitFor();
  });

  it('what could not be done stays said while the list is kept up to date, and pressed twice it is done once', async () => {
    const missing = service().outside.on('/missing.mp4', (_incoming, response) =>
      response.writeHead(404).end(),
    );
    const failed = await service().run(url(missing));
    const stalling = await service().outside.stalling('stuck.mp4', talk);
    const stuck = await service().submit(url(stalling.url));
    await service().reaches(stuck, 'processing');
    await go('#/jobs');
    const again = page.locator(`[data-job="${failed.jobId}"]`).getByRole('button', { name: /^Retry/ });
    await page.locator(`[data-job="${stuck}"] progress`).waitFor();
    await isOffline(true);
    await again.click();
    const fault = page.locator('#history-error', { hasText: 'does not respond' });
    await fault.waitFor();
    await isOffline(false);
    const newer = await service().submit(url(missing));
    await page.locator(`[data-job="${newer}"]`, { hasText: 'Failed' }).waitFor();
    expect(await fault.count()).toBe(1);

    // Choosing one stays in the list.
    await page.locator(`[data-job="${newer}"] .row-choice`).click();
    await page.getByText('1 selected').waitFor();
    expect(new URL(page.url()).hash).toBe(`#/jobs?chosen=${newer}`);
    await page.getByRole('button', { name: 'Clear selection' }).click();

    await again.dblclick();
    await page.locator('#job-status', { hasText: 'Failed' }).waitFor();
    const { jobs } = (await service().call('GET', '/v1/jobs?limit=100')).body.data;
    const retries = jobs.filter(({ retryOf }: { retryOf: string | null }) => retryOf === failed.jobId);
    expect(retries).toHaveLength(1);

    // What is still offered to be cancelled has ended by the time that the press arrives, and cancelling that would erase its file.
    await go('#/jobs');
    const ended = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    await page.route(`**/v1/jobs/${stuck}`, async (route) => {
      asked.resolve();
      await ended.promise;
      await route.continue();
    });
    await page
      .locator(`[data-job="${stuck}"]`)
      .getByRole('button', { name: /^Cancel/ })
      .click();
    await asked.promise;
    stalling.letGo();
    await service().ended(stuck);
    ended.resolve();
    await page.locator(`[data-job="${stuck}"]`, { hasText: 'Completed' }).waitFor();
    expect((await service().call('GET', `/v1/download/${stuck}`)).status).toBe(200);
    await page.unroute(`**/v1/jobs/${stuck}`);
  });

  it('many retries wait where a limit is reached, go on after a reload, and none is done twice', async () => {
    const MANY = 45;
    const missing = service().outside.on('/many.mp4', (_incoming, response) => response.writeHead(404).end());
    const failed = await Promise.all(Array.from({ length: MANY }, () => service().submit(url(missing))));
    await Promise.all(failed.map((id) => service().ended(id)));
    await go('#/jobs?q=many.mp4');
    await page.getByLabel('Select all on this page').click();
    let asked = 0;
    const lost = Promise.withResolvers<void>();
    await page.route('**/v1/jobs/bulk', async (route) => {
      asked += 1;
      if (asked === 2) {
        // It is done, and nobody hears of it.
        await route.fetch();
        lost.resolve();
      } else if (asked >= 3 && asked < 6) {
        // More often than the client asks by itself.
        const error = { code: 'RATE_LIMITED', message: 'too many' };
        const body = JSON.stringify({ success: false, error });
        const headers = { 'Retry-After': '1', 'Content-Type': 'application/json' };
        await route.fulfill({ status: 429, headers, body });
      } else await route.continue();
    });
    await page.getByRole('button', { name: `Retry ${MANY}` }).click();
    await page.getByRole('button', { name: `Retry ${MANY} jobs` }).click();
    await lost.promise;
    await page.reload();
    await page.getByText(`Retry: 20 of ${MANY} jobs · stopped`).waitFor();
    await page.getByRole('button', { name: 'Continue with 25' }).click();
    await page.getByText('waiting for the service or the rate limit').waitFor();
    await page.locator('#bulk-progress', { hasText: `${MANY} retried` }).waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await page.unroute('**/v1/jobs/bulk');
    const { jobs } = (await service().call('GET', '/v1/jobs?limit=100&q=many.mp4')).body.data;
    const retried = jobs.flatMap(({ retryOf }: { retryOf: string | null }) => retryOf ?? []);
    expect(retried.toSorted()).toEqual(failed.toSorted());
  });

  it('an answer that the stream of events has overtaken takes no job back', async () => {
    const [one, other] = [
      await service().outside.stalling('one.mp4', talk),
      await service().outside.stalling('other.mp4', talk),
    ];
    const late: (() => Promise<void>)[] = [];
    await page.route(/\/v1\/jobs\/job_\w+$/, async (route) => {
      const response = await route.fetch();
      late.push(() => route.fulfill({ response }));
    });
    await go('#/');
    for (const { url: address } of [one, other]) {
      await page.getByLabel('Video URL').fill(address);
      await page.getByRole('button', { name: 'Add', exact: true }).click();
    }
    // Before the stream stands nothing overtakes: the page asks once more then, and is held up again.
    const stream = page.waitForResponse((answer) => new URL(answer.url()).pathname === '/v1/events');
    await extract();
    await stream;
    await until('both were asked for', () => late.length >= 2);
    one.letGo();
    other.letGo();
    await page.locator('#batch-title', { hasText: '2 completed' }).waitFor();
    const answered = page.waitForResponse((answer) => /\/v1\/jobs\/job_\w+$/.test(answer.url()));
    await Promise.all(late.map((answer) => answer()));
    await (await answered).finished();
    await page.getByRole('button', { name: 'Start another' }).waitFor();
    expect(await page.locator('#batch-title').textContent()).toBe('2 sources: 2 completed');
    await page.unrouteAll();
  });

  it('nothing of it was an error of the page', () => {
    expect(watch.complaints).toEqual([]);
  });
});
