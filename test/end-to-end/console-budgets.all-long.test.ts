// @module-tag chromium
/** What the console may cost: time and bytes over a slow line, requests while nothing happens, and room on a small screen. */
import type { Page } from 'playwright-core';
import { currentRun } from 'soundpost-testing/by-run';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useClips, useService } from '../api/api-fixture.ts';
import { promised } from '../faults/runs.ts';
import { signIn } from './console-page.ts';
import { failDeliveries, failingHooks, keepJobs } from './kept-jobs.ts';

/** As a phone has it at the edge of a cell. */
const SLOW_LINE = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };
/** From the address to the first view, without what somebody types. */
const FIRST_VIEW_MS = 3000;
const MOST_REQUESTS = 6;
const MOST_BYTES = 200 * 1024;
const IDLE_MS = 10_000;
/** A window of 1280 by 1024 at 400 % (WCAG 2.2, 1.4.10). */
const ZOOMED = { width: 320, height: 256 };
const MOST_OF_HEIGHT = 0.25;

const service = useService();
const clips = useClips('tone.mp4');
let browser: TestBrowser;

beforeAll(async () => {
  browser = await startChromium({ width: 1180, height: 800 });
});
afterAll(() => browser?.close());

interface Line {
  /** Addresses that were asked for. */
  readonly requests: string[];
  readonly bytes: () => number;
}

/** @param conditions of Network.emulateNetworkConditions; default: as fast as it is */
async function watchLine(page: Page, conditions?: typeof SLOW_LINE): Promise<Line> {
  const client = await page.context().newCDPSession(page);
  const requests: string[] = [];
  const received = new Map<string, number>();
  client.on('Network.requestWillBeSent', ({ request: { url } }) => {
    if (!url.startsWith('data:')) requests.push(url);
  });
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) =>
    received.set(requestId, encodedDataLength),
  );
  await client.send('Network.enable');
  // Whatever was looked at before does not count.
  await client.send('Network.clearBrowserCache');
  if (conditions !== undefined) {
    await client.send('Network.emulateNetworkConditions', conditions);
  }
  return { requests, bytes: () => [...received.values()].reduce((sum, bytes) => sum + bytes, 0) };
}

/** When the page first had the elements, and when it was signed in to, ms from the beginning of the navigation. Asked from outside it would be later by as much as a test's question takes. */
const NOTES_TIMES = `
  globalThis.times = {};
  addEventListener('submit', () => { times.submit = performance.now(); }, true);
  new MutationObserver(() => requestAnimationFrame(() => {
    for (const id of ['key', 'new-title']) if (document.getElementById(id) !== null) times[id] ??= performance.now();
  })).observe(document, { subtree: true, childList: true });
`;

it(`shows its first view within ${FIRST_VIEW_MS} ms on a slow line, for few requests and bytes`, async () => {
  const page = await browser.context.newPage();
  await page.addInitScript(NOTES_TIMES);
  const line = await watchLine(page, SLOW_LINE);
  await page.goto(service().url, { waitUntil: 'commit' });
  await page.locator('#key').fill(service().key);
  await page.keyboard.press('Enter');
  await page.locator('#new-title').waitFor();
  await page.waitForLoadState('networkidle');
  const times = await page.evaluate<Record<'key' | 'submit' | 'new-title', number>>('times');
  const tookMs = times.key + times['new-title'] - times.submit;
  const told = `${JSON.stringify(times)}, ${line.bytes()} bytes, of\n${line.requests.join('\n')}`;
  expect.soft(line.requests.length, told).toBeLessThanOrEqual(MOST_REQUESTS);
  expect.soft(line.bytes(), told).toBeLessThanOrEqual(MOST_BYTES);
  promised(tookMs, FIRST_VIEW_MS, told);
  await page.close();
});

it.runIf(currentRun === 'all').each(['History', 'Webhooks'])(
  'asks for nothing while %s, open, has nothing to tell',
  async (view) => {
    const url = await service().outside.file('tone.mp4', clips('tone.mp4'));
    const hook = service().outside.hook('idle');
    const { jobId } = await service().run({
      source: { type: 'url', url },
      output: { format: 'mp3' },
      options: { webhook: hook.url },
    });
    await until('its webhook is delivered', async () => {
      const { body } = await service().call('GET', `/v1/jobs/${jobId}/deliveries`);
      return body.data.deliveries[0]?.status === 'delivered';
    });
    const page = await browser.context.newPage();
    await signIn(page, service().url, service().key);
    const streams = page.waitForResponse((answer) => answer.url().endsWith('/v1/events'));
    await page.getByRole('link', { name: view, exact: true }).click();
    await page.locator(`[data-job="${jobId}"], [data-endpoint="${hook.url}"]`).waitFor();
    await streams;
    const { requests } = await watchLine(page);
    // The one place where a test waits: it is about what does not happen meanwhile.
    await page.waitForTimeout(IDLE_MS);
    expect(requests.length, requests.join('\n')).toBeLessThanOrEqual(1);
    await page.close();
  },
);

describe.runIf(currentRun === 'all')('at 400 %', () => {
  let page: Page;

  beforeAll(async () => {
    page = await browser.context.newPage();
    await page.setViewportSize(ZOOMED);
    await signIn(page, service().url, service().key);
  });
  afterAll(() => page?.close());

  /** The part of the height that the header and the bar take. @param scrolledTo px */
  const covered = (scrolledTo: number) =>
    page.evaluate<number>(`(() => {
      scrollTo(0, ${scrolledTo});
      return ['.top', '.views'].map((selector) => document.querySelector(selector).getBoundingClientRect())
        .reduce((sum, { top, bottom }) => sum + Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0)), 0) / innerHeight;
    })()`);

  it('what stands around a view takes a quarter of the height at most', async () => {
    expect(await covered(0)).toBeLessThanOrEqual(MOST_OF_HEIGHT);
    expect(await covered(200)).toBeLessThanOrEqual(MOST_OF_HEIGHT / 2);
    // The ways to the views have names all the same.
    for (const name of ['New', 'History', 'Webhooks', 'Instances', 'Keys', 'Usage']) {
      await page.getByRole('navigation').getByRole('link', { name, exact: true }).waitFor();
    }
  });

  it.each([
    ['', '#drop'],
    ['jobs', '[data-job]'],
    ['jobs/JOB', '#job-status'],
    ['webhooks', '.card:has-text("Test an endpoint")'],
    ['instances', '.card'],
    ['keys', '.card:has-text("everything")'],
    ['usage', '.card:has-text("Requests per minute")'],
  ])('nothing scrolls sideways in #/%s', async (view, content) => {
    const { body } = await service().call('GET', '/v1/jobs');
    const address = `#/${view.replace('JOB', body.data.jobs[0].jobId)}`;
    await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
    await page.locator(`main ${content}:visible`).first().waitFor();
    const { over, what } = await page.evaluate<{ over: number; what: string[] }>(`(() => {
      const { scrollWidth } = document.documentElement;
      // Beside the scrollbar, which has its place in the style.
      const { clientWidth } = document.body;
      return {
        over: scrollWidth - clientWidth,
        what: [...document.querySelectorAll('main *')]
          .filter((one) => one.offsetParent !== null && one.getBoundingClientRect().right > clientWidth + 0.5)
          .map((one) => one.localName + '#' + one.id + '.' + one.className + ' ' + one.getBoundingClientRect().right),
      };
    })()`);
    expect(over, what.join('\n')).toBe(0);
  });
});

describe.runIf(currentRun === 'all')('among 2,000 jobs and 500 failed deliveries of 40 endpoints', () => {
  const TIMES = 3;
  const LOADS = 5;
  const full = useService({ environment: { WEBHOOK_SCHEDULE_SECONDS: '0' } });

  beforeAll(async () => {
    const hooks = failingHooks(full());
    await keepJobs(full(), { key: full().key, hooks });
    await failDeliveries(full(), hooks);
  }, 200_000);

  /** Seconds of script that a view takes, from its address to its content: the median of some loads. */
  async function scriptSeconds(page: Page, address: string, shown: string): Promise<number> {
    const client = await page.context().newCDPSession(page);
    const took: number[] = [];
    for (let load = 0; load < LOADS; load += 1) {
      await page.goto('about:blank');
      // Counted from here.
      await client.send('Performance.disable');
      await client.send('Performance.enable');
      await page.goto(address);
      await page.locator(shown).first().waitFor();
      // Until nothing is asked for any more: the stream of events stays open.
      await page.waitForTimeout(1000);
      const { metrics } = await client.send('Performance.getMetrics');
      took.push(metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? Number.NaN);
    }
    return took.toSorted((one, other) => one - other)[Math.floor(LOADS / 2)] ?? Number.NaN;
  }

  it.each([
    ['jobs', '#history-empty', '.row'],
    ['webhooks', '#webhooks-empty', '[data-endpoint]'],
    ['usage', '.meter', '.meter'],
    ['', '#drop', '#drop'],
  ])(`#/%s takes at most ${TIMES} times the script of an empty one`, async (view, ofEmpty, ofFull) => {
    const page = await browser.context.newPage();
    const measured: number[] = [];
    const { url } = full();
    for (const [key, shown] of [
      [await full().newKey(), ofEmpty],
      [full().key, ofFull],
    ] as const) {
      await page.context().clearCookies();
      await page.goto(url);
      await page.evaluate('localStorage.clear()');
      await signIn(page, `${url}/?${measured.length}`, key);
      measured.push(await scriptSeconds(page, `${url}/?${measured.length}#/${view}`, shown));
    }
    const [empty = 0, all = 0] = measured;
    expect(all, `${all} s, and ${empty} s of an empty one`).toBeLessThanOrEqual(TIMES * empty);
    await page.close();
  });
});
