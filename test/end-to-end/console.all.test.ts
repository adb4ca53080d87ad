// @module-tag chromium
/** The whole journey of somebody with a video in their hand, at the console, in a real browser and over a network that breaks. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { decodedSeconds, ffmpeg } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GATEWAY_API_KEY, type Hook, useService } from '../api/api-fixture.ts';
import { CuttingProxy } from '../api/cutting-proxy.ts';
import { sendJson, startTranscriber } from '../followups/transcripts/transcriber-stub.ts';
import {
  everyFault,
  isDrawn,
  makeTalk,
  padTo,
  shiftsBeyondBudget,
  signIn,
  tabTo,
  type Watch,
  watchPage,
} from './console-page.ts';
import { ada } from './inbox.ts';

/** The whole journey runs twice: each step needs those before it. */
const VIDEO_BYTES = 200_000_000;
/** For a loaded machine; who waits sees why in the page. */
const PATIENCE_MS = 60_000;
const SCRIPT_BUDGET_BYTES = 200 * 1024;

// The page is not where the service believes itself to be: between them is a stretch of network that can break.
const proxy = await CuttingProxy.open();
const transcriber = await startTranscriber();
const service = useService({
  parts: ['worker', 'gateway'],
  environment: { TRANSCRIBER_URL: transcriber.url },
});
let folder = '';
let video = '';
let browser: TestBrowser;
let page: Page;
let watch: Watch;
let hook: Hook;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-console-'));
  video = await makeTalk(folder, 'interview.mp4', 40);
  await padTo(video, VIDEO_BYTES);
  await makeTalk(folder, 'lecture.mp4', 20);
  await ffmpeg(
    ...['-v', 'error', '-f', 'lavfi', '-i', 'color=c=teal:s=64x64:r=5', '-t', '1', '-c:v', 'mpeg4'],
    join(folder, 'silent.mp4'),
  );
  proxy.leadTo(service().url);
  hook = service().outside.hook('receiver');
  browser = await startChromium({ width: 1180, height: 800 });
  page = await browser.context.newPage();
  watch = await watchPage(page);
});
afterAll(async () => {
  await browser?.close();
  await proxy.close();
  await transcriber.close();
  await rm(folder, { recursive: true, force: true });
});

const status = (text: string) => page.locator('#job-status', { hasText: text });
const uploadText = (text: string) => page.locator('#upload-text', { hasText: text });
const jobId = (): string => page.url().split('/').at(-1) ?? '';

describe('the way of one video', () => {
  it('a wrong key is told what to do, a right one opens the console and stands in no address', async () => {
    await page.goto(proxy.url);
    await page.getByLabel('API key').fill(`sp_aaaaaaaa_${'a'.repeat(40)}`);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('The service does not accept this key').waitFor();
    await signIn(page, proxy.url, service().key);
    await page.locator('#new-title:focus').waitFor();
  });

  it(`${VIDEO_BYTES / 1e6} MB over a connection that breaks twice: after a reload, and by itself, the upload goes on where it stopped`, async () => {
    proxy.breakAfter(
      { afterBytes: VIDEO_BYTES * 0.4, serverHears: true, forAll: true },
      { afterBytes: VIDEO_BYTES * 0.3, serverHears: true },
    );
    await page.setInputFiles('#file', video);
    await uploadText('connection lost, retrying').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await uploadText('Paused at').waitFor();
    proxy.isDown = false;
    expect(await shiftsBeyondBudget(page)).toEqual([]);
    await page.reload();
    await page.getByText('The upload of interview.mp4 was interrupted').waitFor();

    await page.setInputFiles('#file', video);
    await uploadText('Uploaded').waitFor();
    expect(proxy.broken).toBe(2);
    const resumedAt = Number(await page.locator('#upload').getAttribute('data-resumed-at'));
    expect(resumedAt).toBeGreaterThan(VIDEO_BYTES * 0.2);
    const creations = watch.requests.filter((url) => url.endsWith('/v1/uploads'));
    expect(creations).toHaveLength(1);
  });

  it('is trimmed on the waveform and by its fields, which say the same', async () => {
    const drawing = page.locator('#trim-drawing');
    // The drawing, and with it the handle, is made anew once the sound is decoded, and a drag over that moment would be lost.
    await until(
      'what there is to draw is drawn',
      async () =>
        (await isDrawn(page, '#trim-drawing')) ||
        (await page.locator('#trim-note', { hasText: 'No waveform' }).count()) === 1,
      PATIENCE_MS,
    );
    const handle = drawing.locator('[part~="region-handle-right"]');
    const box = await until('the handle is drawn', () => handle.boundingBox());
    const wave = await until('the drawing is there', () => drawing.boundingBox());
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(wave.x + wave.width / 2, box.y + box.height / 2, { steps: 8 });
    await page.mouse.up();
    const dragged = (await page.getByLabel('End', { exact: true }).inputValue()).split(':').map(Number);
    expect(dragged[0]).toBe(0);
    expect(dragged[1]).toBeGreaterThan(17);
    expect(dragged[1]).toBeLessThan(23);

    await page.getByLabel('End', { exact: true }).fill('3');
    await page.getByLabel('Start').fill('0:05');
    await page.getByRole('button', { name: 'Extract audio' }).click();
    await page.getByRole('alert').getByText('The end must come after the start.').waitFor();
    await page.getByLabel('End', { exact: true }).fill('0:17.5');
  });

  it('becomes a job whose end is told by a webhook, and the result plays and has the trimmed length', async () => {
    await page.locator('#loudness-pills').getByText('−16', { exact: true }).click();
    await page.getByText('More options', { exact: true }).click();
    await page.getByLabel('Webhook', { exact: true }).fill(hook.url);
    await page.getByLabel('File name').fill('the best part');
    await page.getByRole('button', { name: 'Extract audio' }).click();
    await status('Completed').waitFor();
    await page.getByRole('heading', { name: 'the best part.mp3' }).waitFor();

    await page.getByRole('button', { name: 'Play', exact: true }).click();
    const position = page.getByRole('slider', { name: 'Position' });
    await until('the position moves', async () => Number(await position.inputValue()) > 0.5);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('the best part.mp3');
    const file = join(folder, 'result.mp3');
    await download.saveAs(file);
    expect(await decodedSeconds(file)).toBeCloseTo(12.5, 1);
  });

  it('a delivery is replayed, and the receiver gets the same one twice', async () => {
    const [first] = await hook.got(1);
    const delivery = page.locator('.delivery', { hasText: 'job.completed' });
    await delivery.getByText('Delivered').waitFor();
    await delivery.getByRole('button', { name: 'Replay job.completed' }).click();
    const second = (await hook.got(2)).at(-1);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.text).toBe(first?.text);
    await until('both tries are listed', async () => (await delivery.locator('.attempts li').count()) === 2);
  });

  it('goes out as a voice message, which the inbox shows, and the console says when it was read', async () => {
    const instance = page.getByLabel('From instance');
    await until('an instance is proposed', async () => (await instance.inputValue()) === 'main');
    await page.getByLabel('To', { exact: true }).fill(ada.number);
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('#send-status', { hasText: /Sent|Delivered/ }).waitFor();
    const inbox = await browser.context.newPage();
    const inboxWatch = await watchPage(inbox);
    await inbox.goto(`${service().gatewayUrl}/inbox`);
    await inbox.getByLabel('Gateway key or instance token').fill(GATEWAY_API_KEY);
    await inbox.keyboard.press('Enter');
    await inbox.getByRole('navigation').getByRole('button', { name: /^Ada/ }).click();
    await inbox.getByRole('button', { name: /^Play voice message, 1[23] seconds/ }).waitFor();
    expect(inboxWatch.complaints).toEqual([]);
    await inbox.close();
    await page.bringToFront();
    await page.locator('#send-status', { hasText: 'Read' }).waitFor();
  });
});

describe('a job that takes its time', () => {
  it('shows its step and its progress while it runs, is cancelled, and tried again to its end', async () => {
    const lecture = await service().outside.stalling('lecture.mp4', join(folder, 'lecture.mp4'));
    await page.getByRole('link', { name: 'New', exact: true }).click();
    await page.getByLabel('Video URL').fill(lecture.url);
    await page.locator('#formats').getByText('Opus', { exact: true }).click();
    await page.getByRole('button', { name: 'Extract audio' }).click();
    const current = page.locator('[aria-current="step"]');
    await current.getByText('Downloading').waitFor();
    await page.locator('#progress-left', { hasText: /left/ }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await status('Cancelled').waitFor();
    const cancelled = jobId();

    await page.evaluate(`(() => {
      globalThis.steps = [];
      new MutationObserver(() => {
        const step = document.querySelector('[aria-current="step"]')?.dataset.step;
        const bar = document.querySelector('#progress-bar');
        if (step !== undefined) globalThis.steps.push([step, bar.value]);
      }).observe(document.querySelector('#content'), { subtree: true, childList: true, characterData: true });
    })()`);
    await page.getByRole('link', { name: 'History' }).first().click();
    await page.getByLabel('Search by name, URL, host or id').fill('lecture');
    const row = page.locator(`[data-job="${cancelled}"]`);
    await until('the search leaves one job', async () => (await page.locator('.row').count()) === 1);
    await row.getByRole('button', { name: /^Retry/ }).click();
    await current.getByText('Downloading').waitFor();
    expect(jobId()).not.toBe(cancelled);
    lecture.letGo();
    await status('Completed').waitFor();
    const steps = await page.evaluate<[string, number][]>('globalThis.steps');
    expect(steps.map(([step]) => step)).toContain('downloading_video');
    expect(steps.map(([, percent]) => percent)).toEqual(
      steps.map(([, percent]) => percent).toSorted((one, other) => one - other),
    );
    expect((await service().job(jobId())).retryOf).toBe(cancelled);
  });

  it('cancels from the history, and filters by state', async () => {
    const stuck = await service().outside.stalling('stuck.mp4', join(folder, 'lecture.mp4'));
    const id = await service().submit({ source: { type: 'url', url: stuck.url }, output: { format: 'mp3' } });
    await page.getByRole('link', { name: 'History' }).first().click();
    await page.getByLabel('Search by name, URL, host or id').fill('');
    const row = page.locator(`[data-job="${id}"]`);
    await row.getByRole('button', { name: /^Cancel/ }).click();
    await row.getByText('Cancelled').waitFor();
    await page.getByRole('button', { name: 'Completed', exact: true }).click();
    await until('only completed jobs are left', async () => (await page.locator('.row').count()) === 2);
    expect(await row.count()).toBe(0);
    await page.getByLabel('Search by name, URL, host or id').fill('no such job');
    await page.getByText('No matching jobs').waitFor();
    await page.getByLabel('Search by name, URL, host or id').fill('');
    await page.getByRole('button', { name: 'All', exact: true }).click();
    // What was typed right before does not bring the last state back.
    await row.waitFor();
    stuck.letGo();
  });

  it('says why one failed, and what helps', async () => {
    const url = await service().outside.file('silent.mp4', join(folder, 'silent.mp4'));
    await page.getByRole('link', { name: 'New', exact: true }).click();
    await page.getByLabel('Video URL').fill(url);
    await page.keyboard.press('Enter');
    await status('Failed').waitFor();
    await page.getByText('EXTRACTION_FAILED').waitFor();
    await page.getByText('this one has no audio').waitFor();
    expect(await page.getByRole('button', { name: 'Retry' }).count()).toBe(0);
  });
});

describe('a job of several outputs', () => {
  it('shows them all, and draws the sound from the waveform that it made', async () => {
    const url = await service().outside.file('several.mp4', join(folder, 'lecture.mp4'));
    const { jobId: made, outputFiles } = await service().run({
      source: { type: 'url', url },
      outputs: [
        { name: 'full', format: 'mp3' },
        { name: 'peaks', format: 'waveform' },
      ],
      options: { filename: 'several' },
    });
    const asked = watch.requests.length;
    await page.evaluate(`location.hash = '#/jobs/${made}'`);
    await page.getByRole('heading', { name: 'several-full.mp3' }).waitFor();
    const others = page.getByRole('list', { name: 'Other files' });
    const link = others.getByRole('link', { name: 'several-peaks.json' });
    expect(await link.getAttribute('download')).toBe('several-peaks.json');
    const { search } = new URL(outputFiles[1].url);
    expect(await link.getAttribute('href')).toContain(search);
    const fetched = () => watch.requests.slice(asked).filter((address) => address.includes('/v1/download/'));
    await until('the waveform is fetched', () => fetched().some((address) => address.includes('name=peaks')));
    await page.getByRole('link', { name: 'History' }).first().click();
    await page.locator(`[data-job="${made}"]`, { hasText: 'MP3, WAVEFORM' }).waitFor();
  });
});

it('of two tracks that are marked as default, names the one that is taken', async () => {
  const both = join(folder, 'two.mkv');
  const tones = [440, 660].flatMap((hertz) => ['-f', 'lavfi', '-i', `sine=${hertz}:d=2`]);
  const tracks = ['-map', '0', '-map', '1', '-disposition:a', 'default'];
  await ffmpeg('-v', 'error', ...tones, ...tracks, '-c:a', 'flac', both);
  const url = await service().outside.file('two.mkv', both);
  const { jobId: made, inputFile } = await service().run({
    source: { type: 'url', url },
    output: { format: 'mp3' },
  });
  expect(inputFile.tracks.map((track: { default: boolean }) => track.default)).toEqual([true, true]);
  await page.evaluate(`location.hash = '#/jobs/${made}'`);
  await page.getByRole('heading', { name: 'two.mp3' }).waitFor();
  const [, told] = (await page.locator('#details').innerText()).split('Audio tracks\n');
  expect(told).toMatch(/^0: .*, default; 1: (?!.*default)/);
});

describe('a job with a transcript', () => {
  const outputs = [
    { name: 'full', format: 'mp3' },
    { name: 'words', format: 'transcript' },
  ];
  const transcriptStatus = (text: string) => page.locator('#transcript-status', { hasText: text });
  async function submit(filename: string): Promise<string> {
    const url = await service().outside.file('spoken.mp4', join(folder, 'lecture.mp4'));
    return service().submit({ source: { type: 'url', url }, outputs, options: { filename } });
  }

  it('shows its words when they come, as text, and plays from the one that is pressed', async () => {
    const IMAGE = '<img src=x onerror="globalThis.wasRun = true">';
    const saying = Promise.withResolvers<void>();
    transcriber.answer = async (response) => {
      await saying.promise;
      const segments = [
        { id: 0, start: 0, end: 4, text: ' The beginning.' },
        { id: 1, start: 12, end: 18, text: ` ${IMAGE}` },
      ];
      sendJson(response, 200, { language: 'english', duration: 20, text: '', segments });
    };
    const made = await submit('spoken');
    await service().ended(made);
    await page.evaluate(`globalThis.isTheSame = true; location.hash = '#/jobs/${made}'`);
    await page.getByRole('heading', { name: 'spoken-full.mp3' }).waitFor();
    await transcriptStatus('Transcribing…').waitFor();
    expect(await page.locator('.transcript-line').count()).toBe(0);

    saying.resolve();
    const line = page.getByRole('button', { name: IMAGE });
    await line.waitFor();
    expect(await page.locator('.transcript-line').count()).toBe(2);
    expect(await page.locator('#transcript-lines img').count()).toBe(0);
    expect(await page.evaluate('[globalThis.isTheSame, globalThis.wasRun ?? null]')).toEqual([true, null]);

    await line.click();
    const position = page.getByRole('slider', { name: 'Position' });
    await until('it is heard from there', async () => {
      const at = Number(await position.inputValue());
      return at > 12.3 && at < 18;
    });
    expect(await page.locator('#transcript-lines [aria-current="true"]').innerText()).toContain('onerror');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
  });

  it('is asked for beside a second file, a waveform and a destination', async () => {
    const url = await service().outside.file('asked.mp4', join(folder, 'lecture.mp4'));
    const destination = new URL('/put/{name}', url).href.replace('%7Bname%7D', '{name}');
    await page.getByRole('link', { name: 'New', exact: true }).click();
    await page.getByLabel('Video URL').fill(url);
    await page.locator('#formats').getByText('MP3', { exact: true }).click();
    await page.getByLabel('End', { exact: true }).fill('0:15');
    if (!(await page.getByLabel('Also make').isVisible())) {
      await page.getByText('More options', { exact: true }).click();
    }
    await page.getByLabel('Also make').selectOption('Opus');
    await page.getByRole('combobox', { name: 'Transcript' }).selectOption('Subtitles (SubRip)');
    await page.getByText('Waveform data').click();
    await page.getByLabel('Destination').fill(destination);
    await page.getByRole('button', { name: 'Extract audio' }).click();
    await status('Completed').waitFor();
    const { outputs, destination: told } = await service().job(jobId());
    expect(outputs).toMatchObject([
      { name: 'audio', format: 'mp3', end: 15 },
      { name: 'also-opus', format: 'opus', end: 15 },
      { name: 'waveform', format: 'waveform', end: 15 },
      { name: 'transcript', format: 'transcript', subtitles: 'srt', end: 15 },
    ]);
    expect(told.url).toBe(destination);

    await page.getByRole('button', { name: 'Reuse source' }).click();
    await page.locator('#new-title').waitFor();
    expect(await page.getByLabel('Also make').inputValue()).toBe('opus');
    expect(await page.getByRole('combobox', { name: 'Transcript' }).inputValue()).toBe('srt');
    expect(await page.locator('#waveform').isChecked()).toBe(true);
    expect(await page.getByLabel('Destination').inputValue()).toBe('');
  });

  it('says why it could not be made', async () => {
    transcriber.answer = (response) => sendJson(response, 400, {});
    const made = await submit('unspoken');
    await page.evaluate(`location.hash = '#/jobs/${made}'`);
    await page.getByRole('heading', { name: 'unspoken-full.mp3' }).waitFor();
    await transcriptStatus('The transcript failed: the transcriber answered 400.').waitFor();
    expect(await page.locator('.transcript-line').count()).toBe(0);
  });
});

describe('for everybody', () => {
  it('is used by keyboard alone', async () => {
    const url = await service().outside.file('by-keyboard.mp4', join(folder, 'lecture.mp4'));
    const other = await browser.context.newPage();
    const otherWatch = await watchPage(other);
    // Another origin: nobody is signed in there.
    await other.goto(service().url);
    await other.locator('#key:focus').waitFor();
    await other.keyboard.insertText(service().key);
    await other.keyboard.press('Enter');
    await other.locator('#new-title:focus').waitFor();
    await tabTo(other, '#url');
    await other.keyboard.insertText(url);
    await tabTo(other, '[name="format"]');
    await other.keyboard.press('ArrowRight');
    await tabTo(other, '#extract');
    await other.keyboard.press('Enter');
    await other.locator('#job-title:focus').waitFor();
    await other.locator('#job-status', { hasText: 'Completed' }).waitFor();
    await tabTo(other, '#player-play');
    await other.keyboard.press('Space');
    const position = other.getByRole('slider', { name: 'Position' });
    await until('the position moves', async () => Number(await position.inputValue()) > 0.2);
    await other.keyboard.press('Space');
    const heard = Number(await position.inputValue());
    await tabTo(other, '#player-position');
    for (let presses = 0; presses < 20; presses += 1) await other.keyboard.press('ArrowRight');
    expect(Number(await position.inputValue())).toBeGreaterThan(heard + 1.5);
    expect((await service().job(other.url().split('/').at(-1) ?? '')).output.format).toBe('m4a');
    expect(otherWatch.complaints).toEqual([]);
    await other.close();
  });

  it.each(['light', 'dark'] as const)(
    'axe-core finds nothing serious in any view: %s',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const { jobs } = (await service().call('GET', '/v1/jobs?status=completed')).body.data;
      const { jobs: failed } = (await service().call('GET', '/v1/jobs?status=failed&q=silent')).body.data;
      const stuck = await service().outside.stalling(`axe-${colorScheme}.mp4`, join(folder, 'lecture.mp4'));
      const running = await service().submit({
        source: { type: 'url', url: stuck.url },
        output: { format: 'mp3', normalize: true },
      });
      await service().reaches(running, 'processing');
      const views = {
        '#/': '#new-title',
        '#/jobs': '.row',
        [`#/jobs/${jobs.at(-1).jobId}`]: '.delivery',
        [`#/jobs/${failed[0].jobId}`]: '#job-failed',
        [`#/jobs/${running}`]: '[aria-current="step"]',
        '#/webhooks': '[data-endpoint]',
        '#/usage': '.meter',
      };
      for (const [address, shown] of Object.entries(views)) {
        await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
        await page.locator(shown).filter({ visible: true }).first().waitFor();
        expect({ address, faults: await everyFault(page) }).toEqual({ address, faults: [] });
      }
      stuck.letGo();
    },
  );

  it('fits a phone without moving sideways, and its switch changes the colours', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    for (const address of ['#/', '#/jobs', '#/webhooks', '#/usage']) {
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      expect({ address, fits: width <= 360 }).toEqual({ address, fits: true });
    }
    const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    const before = await background();
    await page.getByRole('button', { name: /theme$/ }).click();
    expect(await background()).not.toBe(before);
  });

  it('signs out, and nothing of the key or of the uploads stays', async () => {
    expect(await shiftsBeyondBudget(page)).toEqual([]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    expect(await everyFault(page)).toEqual([]);
    const left = await page.evaluate<string>('JSON.stringify({ ...sessionStorage, ...localStorage })');
    expect(left).not.toContain(service().key);
    expect(left).not.toContain('interview');
  });

  it('asked nobody else, stayed within its budget, and its policy kept nothing out', () => {
    const origins = new Set(watch.requests.map((url) => new URL(url).origin));
    expect([...origins].filter((origin) => origin !== 'null')).toEqual([proxy.url]);
    expect(watch.requests.filter((url) => url.includes(service().key))).toEqual([]);
    expect(watch.complaints).toEqual([]);
    const scriptBytes = [...watch.scripts.values()].reduce((sum, bytes) => sum + bytes, 0);
    expect(watch.scripts.size).toBeGreaterThan(5);
    expect(scriptBytes).toBeGreaterThan(30_000);
    expect(scriptBytes).toBeLessThan(SCRIPT_BUDGET_BYTES);
  });
});
