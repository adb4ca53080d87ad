// @module-tag chromium
// @module-tag firefox
/**
 * Daily tasks at the console, each within its clicks and keys (a typed word is one), in both
 * browsers: among 2,000 jobs of the last days.
 */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChromium } from 'soundpost-testing/chromium';
import { startFirefox } from 'soundpost-testing/firefox';
import { ffmpeg } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GATEWAY_API_KEY, type Json, useClips, useService } from '../api/api-fixture.ts';
import { CuttingProxy } from '../api/cutting-proxy.ts';
import { sendJson, startTranscriber } from '../followups/transcripts/transcriber-stub.ts';
import { counted } from './clicks.ts';
import { everyFault, makeTalk } from './console-page.ts';
import { ada, playOtherSide } from './inbox.ts';
import { FAILED_YESTERDAY, KEPT, keepJobs, OF_ONE_HOST } from './kept-jobs.ts';

const UPLOAD_BYTES = 2_000_000_000;
const PAGE = 50;

const transcriber = await startTranscriber();
// Uploads go through a stretch of network that breaks.
const proxy = await CuttingProxy.open();
const service = useService({
  parts: ['worker', 'gateway'],
  names: { 'cdn.example': ['127.0.0.1'], 'media.example': ['127.0.0.1'] },
  environment: { TRANSCRIBER_URL: transcriber.url },
});
const clips = useClips('tone.mp4');
let folder = '';
let film = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-tasks-'));
  for (const nth of [1, 2, 3]) await makeTalk(folder, `part ${nth}.mp4`, 2);
  await makeTalk(folder, 'long.mp4', 100);
  film = join(folder, 'film.mkv');
  const tones = [440, 660].flatMap((hertz) => ['-f', 'lavfi', '-i', `sine=${hertz}:d=2`]);
  const languages = ['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=spa'];
  await ffmpeg('-v', 'error', ...tones, '-map', '0', '-map', '1', ...languages, '-c:a', 'flac', film);
  const huge = await open(join(folder, 'huge.mov'), 'w');
  await huge.write(Buffer.from('000000146674797071742020000000007174202000000008', 'hex'));
  await huge.truncate(UPLOAD_BYTES);
  await huge.close();
  transcriber.answer = (response) => {
    const say = (id: number, text: string) => ({ id, start: id * 0.3, end: id * 0.3 + 0.3, text });
    const segments = [
      say(0, ' A harbour at night.'),
      say(1, ' Nothing moves.'),
      say(2, ' The harbour wakes.'),
    ];
    sendJson(response, 200, { language: 'english', duration: 1, text: '', segments });
  };
  proxy.leadTo(service().url);
}, 120_000);
afterAll(async () => {
  await proxy.close();
  await transcriber.close();
  await rm(folder, { recursive: true, force: true });
});

type Driven = Parameters<typeof counted>[0];

interface TaskPage extends Driven {
  goto(url: string): Promise<unknown>;
  url(): string;
  readonly keyboard: Driven['keyboard'] & {
    down(key: string): Promise<void>;
    up(key: string): Promise<void>;
  };
  close(options?: { runBeforeUnload?: boolean }): Promise<void>;
}

interface TaskBrowser {
  newPage(): Promise<TaskPage>;
  /** Through the dialog of the operating system. */
  choose(page: TaskPage, files: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

const browsers: readonly [name: string, start: () => Promise<TaskBrowser>][] = [
  [
    'Chromium',
    async () => {
      const browser = await startChromium({ width: 1180, height: 800 });
      return {
        newPage: () => browser.context.newPage(),
        choose: (page, files) => {
          const known = browser.context.pages().find((one) => one === page);
          return known?.setInputFiles('#file', [...files]) ?? Promise.reject(new Error('it is closed'));
        },
        close: () => browser.close(),
      };
    },
  ],
  [
    'Firefox',
    async () => {
      const browser = await startFirefox({ 'media.volume_scale': '0.0' });
      const pages = new Set<Awaited<ReturnType<typeof browser.newPage>>>();
      return {
        async newPage() {
          const page = await browser.newPage();
          pages.add(page);
          return page;
        },
        async choose(page, files) {
          const known = [...pages].find((one) => one === page);
          const input = await known?.waitForSelector('input#file');
          await input?.uploadFile(...files);
        },
        close: () => browser.close(),
      };
    },
  ],
];

describe.each(browsers)('in %s', (name, start) => {
  let browser: TaskBrowser;
  let page: TaskPage;
  let key = '';

  beforeAll(async () => {
    key = await service().newKey();
    await keepJobs(service(), { key, first: name === 'Firefox' ? KEPT : 0 });
    browser = await start();
    page = await browser.newPage();
    await signIn(page, service().url);
  }, 120_000);
  afterAll(() => browser?.close());

  async function signIn(tab: TaskPage, address: string): Promise<void> {
    await tab.goto(address);
    const person = counted(tab);
    await person.click('#key');
    await person.type(key);
    await person.press('Enter');
    await person.shows('New extraction');
  }

  const jobOf = (id: string): Promise<Json> => service().job(id, { key });

  /** A console that was just opened; what is copied can be read. */
  async function home(view = '') {
    await page.goto(`${service().url}/?${Math.random()}#/${view}`);
    await page.evaluate('navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }');
    await counted(page).shows('Soundpost');
    return counted(page);
  }
  const copied = (): Promise<unknown> => page.evaluate('globalThis.copied');
  const files = (...names: readonly string[]): Promise<void> =>
    browser.choose(
      page,
      names.map((one) => join(folder, one)),
    );
  const jobId = (): string => /job_[0-9a-f]{16}/.exec(page.url())?.[0] ?? '';
  const reasons = (): Promise<unknown> =>
    page.evaluate(`[...document.querySelectorAll('.row-reason')].map((one) => one.textContent)`);
  const rows = (): Promise<unknown> => page.evaluate(`document.querySelectorAll('.row').length`);
  const rowsBecome = (count: number) =>
    until(`there are ${count} rows`, async () => (await rows()) === count);
  const historyLink = 'a[data-view="history"]';
  /** A job that is done, and the newest. */
  async function done(more: object = {}): Promise<string> {
    const url = await service().outside.file('tone.mp4', clips('tone.mp4'));
    const wanted = { source: { type: 'url', url }, output: { format: 'voice' }, ...more };
    const { jobId: made } = await service().run(wanted, { key });
    return made;
  }
  const rowLink = (id: string): string => `[data-job="${id}"] a`;

  it('1: extracts one file as MP3 and downloads it', async () => {
    const person = await home();
    await files('part 1.mp4');
    await person.click('#extract');
    await person.shows('Completed');
    await person.click('#download');
    expect(1 + person.count).toBeLessThanOrEqual(4);
    expect(await jobOf(jobId())).toMatchObject({ status: 'completed', output: { format: 'mp3' } });
  });

  it('2: extracts three files at once as Opus', async () => {
    const person = await home();
    await files('part 1.mp4', 'part 2.mp4', 'part 3.mp4');
    await person.click('.format', 'Opus smallest');
    await person.click('#extract');
    await person.shows('3 sources: 3 completed', 'OPUS');
    expect(1 + person.count).toBeLessThanOrEqual(4);
  });

  it('3: extracts the right channel alone of an address', async () => {
    const person = await home();
    await person.click('#url');
    await person.type(await service().outside.file('tone.mp4', clips('tone.mp4')));
    await person.click('#more summary');
    await person.click('#channel-pills .pill', 'Right');
    await person.click('#extract');
    await person.shows('Completed', 'Mono');
    expect(person.count).toBeLessThanOrEqual(6);
    expect((await jobOf(jobId())).output.channel).toBe('right');
  });

  it('4 and 5: sees the tracks of a film, and takes the Spanish one', async () => {
    const person = await home();
    await files('film.mkv');
    await person.click('#show-tracks');
    await person.shows('2 audio tracks', 'English', 'Spanish', 'flac, mono');
    expect(1 + person.count).toBeLessThanOrEqual(4);
    await person.click('.track input', 'Spanish flac, mono, 44.1 kHz');
    await person.click('#extract');
    await person.shows('Completed');
    expect(1 + person.count).toBeLessThanOrEqual(5);
    expect((await jobOf(jobId())).output.track).toBe(1);
  });

  it('6: cuts 00:10 to 01:30 and normalizes to −19 LUFS', async () => {
    const person = await home();
    await files('long.mp4');
    await person.click('#start');
    await person.type('00:10');
    await person.press('Tab');
    await person.type('01:30');
    await person.click('#loudness-pills .pill', '−19');
    await person.click('#extract');
    await person.shows('Completed', 'LUFS, from');
    expect(1 + person.count).toBeLessThanOrEqual(7);
    const { output, outputFile } = await jobOf(jobId());
    expect(output).toMatchObject({ start: 10, end: 90, loudness: -19 });
    expect(outputFile.loudness.outputLufs).toBeCloseTo(-19, 0);
  });

  it('7 and 8: sends the result as a voice message to a known number, and sees whether it was played', async () => {
    const made = await done();
    const person = await home();
    await person.click(historyLink);
    await person.click(rowLink(made));
    await person.click('#recipient');
    await person.type(ada.number);
    await person.click('#send-form [type="submit"]');
    await person.shows('Delivered');
    expect(person.count).toBeLessThanOrEqual(5);

    const { voiceMessage } = await jobOf(made);
    await playOtherSide(service().gatewayUrl, `chats/${ada.jid}/opened`, GATEWAY_API_KEY);
    const message = `chats/${ada.jid}/messages/${voiceMessage.key.id}/played`;
    await playOtherSide(service().gatewayUrl, message, GATEWAY_API_KEY);
    const later = await home();
    await later.click(historyLink);
    await later.click(rowLink(made));
    await later.shows('Played');
    expect(later.count).toBeLessThanOrEqual(2);
  });

  it('9: sends a failed voice message again', async () => {
    const instance = `late-${name}`;
    const made = await done({ options: { voiceMessage: { instance, number: ada.number } } });
    await until('it could not be sent', async () => (await jobOf(made)).voiceMessage?.status === 'failed');
    await service().gateway('POST', '/instance/create', { instanceName: instance, integration: 'LOOPBACK' });
    await service().gateway('GET', `/instance/connect/${instance}`);
    const person = await home();
    await person.click(historyLink);
    await person.click(rowLink(made));
    await person.shows('Failed');
    await person.click('#send-form [type="submit"]', 'Send again');
    await person.shows('Delivered');
    expect(person.count).toBeLessThanOrEqual(3);
  });

  it('10: cancels a job that is running', async () => {
    const stuck = await service().outside.stalling(`stuck-${name}.mp4`, clips('tone.mp4'));
    const wanted = { source: { type: 'url', url: stuck.url }, output: { format: 'mp3' } };
    const id = await service().submit(wanted, { key });
    await until('it is running', async () => (await jobOf(id)).status === 'processing');
    const person = await home();
    await person.click(historyLink);
    await person.click(`[data-job="${id}"] [data-part="action"]`);
    await until('it is cancelled', async () => (await jobOf(id)).error?.code === 'JOB_CANCELLED');
    expect(person.count).toBeLessThanOrEqual(3);
    stuck.letGo();
  });

  it('11, 12 and 13: finds yesterday’s failed jobs, those of one host with their reasons, and retries these 40', async () => {
    const person = await home();
    await person.click(historyLink);
    await person.click('.filter-buttons button', 'Failed');
    await person.click('.filter-buttons button', 'Yesterday');
    await person.shows(`1–${PAGE} of ${FAILED_YESTERDAY} jobs`);
    expect(person.count).toBeLessThanOrEqual(3);

    const narrowing = counted(page);
    await narrowing.click('#search');
    await narrowing.type('cdn.example');
    await rowsBecome(OF_ONE_HOST);
    expect(await reasons()).toEqual(Array(OF_ONE_HOST).fill('HTTP 404 from cdn.example'));
    expect(narrowing.count).toBeLessThanOrEqual(2);
    expect(await axeFaults()).toEqual([]);

    const retrying = counted(page);
    await retrying.click('#choose-page');
    await retrying.click('.bulk button', 'Retry 40');
    await retrying.shows('Retry 40 jobs?');
    await retrying.click('#confirm-yes');
    await retrying.shows('40 retried');
    expect(retrying.count).toBeLessThanOrEqual(3);
    const { jobs } = (await service().call('GET', '/v1/jobs?limit=40', { key })).body.data;
    expect(new Set(jobs.map(({ retryOf }: Json) => retryOf)).size).toBe(OF_ONE_HOST);
    await retrying.click('#bulk-progress button', 'Dismiss');
  });

  it('15: finds a job by part of its file name', async () => {
    const person = await home();
    await page.keyboard.down('Control');
    await person.press('k');
    await page.keyboard.up('Control');
    await person.type('quarterly');
    await person.shows('quarterly-review.mp3');
    await rowsBecome(1);
    expect(person.count).toBeLessThanOrEqual(2);
  });

  it('18: sends the link of a filtered list, page three, which shows a colleague the same', async () => {
    const person = await home();
    await person.click(historyLink);
    await person.click('.filter-buttons button', 'Completed');
    await person.shows('Page 1', `1–${PAGE} of `);
    await person.click('.pages button', 'Older');
    await person.shows('Page 2');
    await person.click('.pages button', 'Older');
    await person.shows('Page 3', '101–150 of ');
    const shown = await page.evaluate('document.querySelector("#jobs").textContent');
    const sending = counted(page);
    await sending.click('#copy-link');
    await sending.shows('Link to this list copied.');
    expect(sending.count).toBeLessThanOrEqual(1);

    const colleague = await browser.newPage();
    await colleague.goto(String(await copied()));
    await counted(colleague).shows('Page 3', '101–150 of ');
    expect(await colleague.evaluate('document.querySelector("#jobs").textContent')).toBe(shown);
    await colleague.close();
    // Back leads to the page before.
    await page.evaluate('history.back()');
    await sending.shows('Page 2');
  });

  it('19: copies the addresses of 50 results as a list', async () => {
    await home('jobs?status=completed&q=talk-');
    const person = counted(page);
    await rowsBecome(PAGE);
    await person.click('#choose-page');
    await person.click('.bulk button', 'Copy 50 addresses');
    await person.shows('50 addresses copied');
    const list = String(await copied()).split('\n');
    expect(list).toHaveLength(PAGE);
    for (const address of list) expect(address).toContain(`${service().url}/v1/download/job_`);
    expect(person.count).toBeLessThanOrEqual(3);
  });

  it('24: reads a transcript, finds a word in it, copies the text', async () => {
    const outputs = [
      { name: 'full', format: 'mp3' },
      { name: 'words', format: 'transcript' },
    ];
    const made = await done({ output: undefined, outputs });
    await until('it is heard', async () => (await jobOf(made)).transcripts[0].status === 'completed');
    const person = await home('jobs');
    await person.click(rowLink(made));
    await person.shows('A harbour at night.');
    await person.click('#transcript-search');
    await person.type('harbour');
    await person.shows('1 of 2');
    expect(await axeFaults()).toEqual([]);
    await person.click('#transcript-copy');
    expect(person.count).toBeLessThanOrEqual(4);
    await until('it is copied', async () => (await copied()) !== undefined);
    expect(await copied()).toBe('A harbour at night.\nNothing moves.\nThe harbour wakes.');
  });

  it('29: goes on with an upload of 2 GB after the tab was closed', async () => {
    const first = await browser.newPage();
    await signIn(first, proxy.url);
    const uploading = counted(first);
    proxy.breakAfter({ afterBytes: 60_000_000, serverHears: true, forAll: true });
    await browser.choose(first, [join(folder, 'huge.mov')]);
    await uploading.shows('connection lost');
    await first.close({ runBeforeUnload: true });
    proxy.isDown = false;

    const second = await browser.newPage();
    await second.goto(proxy.url);
    const person = counted(second);
    await person.shows('The upload of huge.mov was interrupted. Choose the same file again');
    await browser.choose(second, [join(folder, 'huge.mov')]);
    await person.shows('resumed');
    expect(1 + person.count).toBeLessThanOrEqual(3);
    const resumedAt = Number(await second.evaluate(`document.querySelector('#upload').dataset.resumedAt`));
    expect(resumedAt).toBeGreaterThan(10_000_000);
    // The rest of it would be the same.
    await person.click('#chosen-remove');
    await second.close();
  });

  // Last, since it takes what the others are about.
  it('14: erases all jobs older than three days, after a confirmation that names their number', async () => {
    const lastMs = new Date().setHours(0, 0, 0, 0) - 3 * 24 * 60 * 60_000 - 1;
    const to = new Date(lastMs).toISOString();
    const { total } = (await service().call('GET', `/v1/jobs?to=${to}&limit=1`, { key })).body.data;
    expect(total).toBeGreaterThan(KEPT / 4);
    const many = total.toLocaleString('en');
    const person = await home();
    await person.click(historyLink);
    await person.click('.filter-buttons button', 'Older than 3 days');
    await person.click('#select-all', `Select all ${many}`);
    await person.click('.bulk button', `Erase ${many}`);
    await person.shows(`Erase ${many} jobs?`);
    await person.click('#confirm-yes');
    await person.shows(`${many} erased`);
    expect(person.count).toBeLessThanOrEqual(5);
    const { jobs } = (await service().call('GET', `/v1/jobs?to=${to}&limit=100`, { key })).body.data;
    expect(jobs.filter(({ outputFile }: Json) => outputFile?.url !== undefined)).toEqual([]);
  });

  /** All that axe-core finds in the page as it stands. */
  const axeFaults = (): Promise<string[]> => everyFault(page);
});
