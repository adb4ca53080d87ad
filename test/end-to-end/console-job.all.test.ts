// @module-tag chromium
/** The view of a job in the console, where the whole way of a video (console.all.test.ts) does not come by: passing on, whom to send to, and why it failed. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GATEWAY_API_KEY, type Json, useClips, useService } from '../api/api-fixture.ts';
import { everyFault, makeTalk, signIn, type Watch, watchPage } from './console-page.ts';
import { ada, messagesTo } from './inbox.ts';

const run = promisify(execFile);

// Browsers have to know where the gateway is.
const GATEWAY_PORT = String(await freePort());
const service = useService({ parts: ['worker', 'gateway'], environment: { GATEWAY_PORT } });
const clip = useClips('tone.mp4', 'silent.mp4');
let folder = '';
let browser: TestBrowser;
let page: Page;
let watch: Watch;
let made: Json;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-console-job-'));
  const talk = await makeTalk(folder, 'talk.mp4', 20);
  const url = await service().outside.file('talk.mp4', talk);
  made = await service().run({
    source: { type: 'url', url },
    output: { format: 'opus' },
    options: { filename: "it's" },
  });
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

async function open(jobId: string): Promise<void> {
  await page.evaluate(`location.hash = '#/jobs/${jobId}'`);
  await page.locator('#job-subtitle', { hasText: `${jobId} ·` }).waitFor();
}
const clipboard = () => page.evaluate<string>('navigator.clipboard.readText()');

describe('passing on', () => {
  it('the shared link opens the file without a key, and says until when', async () => {
    await open(made.jobId);
    await page.getByRole('button', { name: 'Share link' }).click();
    await page.locator('#share-note', { hasText: /can download the file until .*\d{4}/ }).waitFor();
    const { status, bytes } = await service().call('GET', await clipboard(), { key: null });
    expect(status).toBe(200);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(made.outputFile.sha256);
  });

  it('the copied command makes the same job, whatever its names hold', async () => {
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.locator('#curl-note', { hasText: 'It reads the key from SOUNDPOST_KEY' }).waitFor();
    const { stdout } = await run('sh', ['-c', await clipboard()], {
      env: { ...process.env, SOUNDPOST_KEY: service().key },
    });
    const again = await service().ended(JSON.parse(stdout).data.jobId);
    expect(again.outputFile.filename).toBe("it's.opus");
    expect({ output: again.output, options: again.options }).toEqual({
      output: made.output,
      options: made.options,
    });
  });

  it('where a page may not copy, the text stands there to be copied by hand', async () => {
    await page.evaluate(
      `Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })`,
    );
    await page.getByRole('button', { name: 'Share link' }).click();
    const { url } = (await service().job(made.jobId)).outputFile;
    expect(await page.getByLabel('To copy').inputValue()).toBe(url);
    await page.evaluate('delete navigator.clipboard');
  });
});

describe('the player', () => {
  it('follows a pointer that is dragged over the waveform', async () => {
    await page.reload();
    const position = page.getByRole('slider', { name: 'Position' });
    const box = await until('the waveform is there', () => position.boundingBox());
    const at = (share: number) => [box.x + box.width * share, box.y + box.height / 2] as const;
    await page.mouse.move(...at(0.25));
    await page.mouse.down();
    expect(Number(await position.inputValue())).toBeCloseTo(5, 0);
    await page.mouse.move(...at(0.75), { steps: 5 });
    await page.mouse.up();
    expect(Number(await position.inputValue())).toBeCloseTo(15, 0);
    expect(await page.locator('#player-time').textContent()).toMatch(/^0:1[45] \/ 0:20$/);
  });

  it('says so where the sound cannot be decoded, keeps the place of the waveform, and plays', async () => {
    let isGarbled = true;
    await page.route('**/v1/download/**', (route) =>
      isGarbled && route.request().resourceType() === 'fetch'
        ? route.fulfill({ status: 200, body: 'no sound at all' })
        : route.continue(),
    );
    await page.reload();
    await page.locator('#player-note', { hasText: 'cannot decode the file' }).waitFor();
    const drawing = page.locator('#player-drawing canvas').first();
    await until('a line is drawn', async () => ((await drawing.boundingBox())?.height ?? 0) > 90);
    await page.getByRole('button', { name: 'Play', exact: true }).click();
    const position = page.getByRole('slider', { name: 'Position' });
    await until('it plays', async () => Number(await position.inputValue()) > 0.2);
    isGarbled = false;
    await page.reload();
    await drawing.waitFor();
    expect(await page.locator('#player-note').textContent()).toBe('');
    await page.unroute('**/v1/download/**');
  });
});

describe('sending', () => {
  const send = () => page.getByRole('button', { name: /^Send( again)?$/ });
  const options = (name = '') =>
    page.getByRole('listbox', { name: 'People and groups' }).getByRole('option', { name });
  const messages = async () => {
    const sent = await messagesTo(service().gatewayUrl, ada.jid, { apikey: GATEWAY_API_KEY });
    return sent.length;
  };

  it('without the key of the gateway says where to give it, and a number can be typed', async () => {
    await page.reload();
    await page.getByText('To pick people by name').getByRole('link', { name: 'Instances' }).waitFor();
    await until(
      'an instance is proposed',
      async () => (await page.getByLabel('From instance').inputValue()) === 'main',
    );
    await page.getByLabel('To', { exact: true }).click();
    expect(await options().count()).toBe(0);
  });

  it('with it a person is picked by name from a connected instance', async () => {
    await page.evaluate(`sessionStorage.setItem('soundpost.console.gateway', '${GATEWAY_API_KEY}')`);
    await page.reload();
    const instance = page.getByLabel('From instance');
    await instance.locator('option', { hasText: 'main' }).waitFor({ state: 'attached' });
    expect(await instance.inputValue()).toBe('main');
    await page.getByPlaceholder('Name, or number').fill('Nobody');
    await send().click();
    await page.getByRole('alert').getByText('has no contact “Nobody”').waitFor();

    await page.getByLabel('To', { exact: true }).fill('lovel');
    await options(`Ada Lovelace ${ada.number}`).waitFor();
    expect(await options().count()).toBe(1);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    expect(await page.getByLabel('To', { exact: true }).inputValue()).toBe('Ada Lovelace');
    await send().click();
    await page.locator('#send-status', { hasText: /Sent|Delivered/ }).waitFor();
    expect(await messages()).toBe(1);
    await page.getByLabel('To', { exact: true }).click();
    expect(await options().count()).toBeGreaterThan(2);
    expect(await everyFault(page)).toEqual([]);
    await options('Ada Lovelace').click();
    await page.getByRole('button', { name: 'Send again' }).click();
    await until('it has come again', async () => (await messages()) === 2);
  });

  it('without it again, who was sent to in this tab is offered', async () => {
    await page.evaluate(`sessionStorage.removeItem('soundpost.console.gateway')`);
    await page.reload();
    await until(
      'she is filled in',
      async () => (await page.getByLabel('To', { exact: true }).inputValue()) === 'Ada Lovelace',
    );
    await until('from main', async () => (await page.getByLabel('From instance').inputValue()) === 'main');
    await send().click();
    await until('it has come to her', async () => (await messages()) === 3);
  });

  it('a number that nobody has is told with what helps', async () => {
    await page.getByLabel('To', { exact: true }).fill('+12025550199');
    await send().click();
    await page.locator('#send-status', { hasText: 'Failed' }).waitFor();
    await page.locator('#send-note', { hasText: 'Check the number and its country code' }).waitFor();
    expect(await everyFault(page)).toEqual([]);
  });
});

describe('a failure', () => {
  const failed = async (name: string, bytes: string, output: object = {}): Promise<string> => {
    await writeFile(join(folder, name), bytes);
    const url = await service().outside.file(name, join(folder, name));
    return (await service().run({ source: { type: 'url', url }, output: { format: 'mp3', ...output } }))
      .jobId;
  };
  const of = async (url: string, output: object = {}): Promise<string> =>
    (await service().run({ source: { type: 'url', url }, output: { format: 'mp3', ...output } })).jobId;
  const tone = () => service().outside.file('tone.mp4', clip('tone.mp4'));
  const answering = (status: number, headers = {}) =>
    service().outside.on(`/${status}.mp4`, (_incoming, response) =>
      response.writeHead(status, headers).end(),
    );

  const told: [string, () => Promise<string>, { says: string; helps: string; mayRetry: boolean }][] = [
    [
      'a video without sound',
      async () => of(await service().outside.file('silent.mp4', clip('silent.mp4'))),
      { says: 'No audio stream.', helps: 'this one has no audio', mayRetry: false },
    ],
    [
      'a track that it has not',
      async () => of(await tone(), { track: 4 }),
      { says: 'No audio track 4', helps: 'one of the tracks that it has', mayRetry: false },
    ],
    [
      'a part behind its end',
      async () => of(await tone(), { start: 60 }),
      {
        says: 'no audio between the requested start and end',
        helps: 'a part that has audio',
        mayRetry: false,
      },
    ],
    [
      'a page in place of a video',
      () => failed('page.html', '<!doctype html><title>Watch</title>'),
      { says: 'a web page, not a media file', helps: 'not to a page that shows it', mayRetry: true },
    ],
    [
      'nothing at the address',
      () => of(answering(404)),
      { says: 'HTTP 404', helps: 'no file at this address', mayRetry: true },
    ],
    ['a sign-in', () => of(answering(403)), { says: 'HTTP 403', helps: 'opens without one', mayRetry: true }],
    [
      'an address that leads into a private network',
      () => of(answering(302, { location: 'http://10.0.0.1/video.mp4' })),
      { says: 'not allowed', helps: 'Use a public address', mayRetry: false },
    ],
  ];
  it.each(told)('%s: says why, and the one thing that helps', async (_what, make, expected) => {
    await open(await make());
    await page.locator('#job-status', { hasText: 'Failed' }).waitFor();
    expect({
      says: await page.locator('#failed-text').textContent(),
      helps: await page.locator('#failed-remedy').textContent(),
      mayRetry: (await page.getByRole('button', { name: 'Retry' }).count()) === 1,
    }).toEqual({
      says: expect.stringContaining(expected.says),
      helps: expect.stringContaining(expected.helps),
      mayRetry: expected.mayRetry,
    });
  });

  it('a cancelled job is no fault, and can be tried again', async () => {
    const stuck = await service().outside.stalling('stuck.mp4', clip('tone.mp4'));
    const id = await service().submit({ source: { type: 'url', url: stuck.url }, output: { format: 'mp3' } });
    await open(id);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('heading', { name: 'Cancelled' }).waitFor();
    stuck.letGo();
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.locator('#job-status', { hasText: 'Completed' }).waitFor();
    await page.getByText(`retry of ${id}`).waitFor();
  });
});

it('a probe shows the tracks, in the history their number, and has nothing to play', async () => {
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const { jobId } = await service().run({ source: { type: 'url', url }, output: { format: 'probe' } });
  await open(jobId);
  await page.locator('#job-status', { hasText: 'Completed' }).waitFor();
  await page.locator('#details', { hasText: /0: .*aac/ }).waitFor();
  expect(await page.locator('#job-result, #job-erased').count()).toBe(0);
  await page.evaluate("location.hash = '#/jobs'");
  await page.locator(`[data-job="${jobId}"]`, { hasText: /1 track.*PROBE/ }).waitFor();
});

it('an erased result says so, and how it comes back', async () => {
  await service().call('DELETE', `/v1/jobs/${made.jobId}`);
  await open(made.jobId);
  await page.getByText('have expired').waitFor();
  expect(await page.locator('#job-result').count()).toBe(0);
});

it('nothing of it was an error of the page', () => {
  expect(watch.complaints).toEqual([]);
});
