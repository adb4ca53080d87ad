// @module-tag chromium
/** What a page shows where one of its scripts is blocked, by an extension or a proxy, or does not arrive: never nothing. Firefox without any script is in firefox.all.test.ts. */
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from 'soundpost-testing/chromium';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useClips, useService } from '../api/api-fixture.ts';
import { signIn } from './console-page.ts';

const service = useService({ parts: ['worker', 'gateway'] });
const clips = useClips('tone.mp4');
let browser: TestBrowser;

beforeAll(async () => {
  browser = await startChromium({ width: 1180, height: 800 });
});
afterAll(() => browser?.close());

/** A page on which no script of this address arrives. */
async function pageWithout(blocked: string): Promise<Page> {
  const page = await browser.context.newPage();
  await page.route(blocked, (route) => route.abort('blockedbyclient'));
  return page;
}

async function scriptsOf(open: (page: Page) => Promise<unknown>): Promise<string[]> {
  const page = await browser.context.newPage();
  const scripts = new Set<string>();
  page.on('request', (request) => {
    if (request.resourceType() === 'script') scripts.add(request.url());
  });
  await open(page);
  await page.close();
  return [...scripts];
}

it.each([
  ['the console', () => service().url, 'The console did not start.', 1],
  ['the inbox', () => `${service().gatewayUrl}/inbox`, 'The voice inbox did not start.', 1],
  ['the reference', () => `${service().url}/docs`, 'The reference did not start.', 2],
  ['the gateway’s', () => `${service().gatewayUrl}/docs`, 'The reference did not start.', 2],
])(
  '%s says that it did not start, whichever of its scripts is blocked',
  async (_page, address, text, count) => {
    const scripts = await scriptsOf((page) => page.goto(address(), { waitUntil: 'load' }));
    expect(scripts).toHaveLength(count);
    for (const script of scripts) {
      const page = await pageWithout(script);
      await page.goto(address());
      await page.getByText(text).waitFor();
      await page.close();
    }
  },
);

it('the message is gone where nothing is blocked', async () => {
  const page = await browser.context.newPage();
  await page.goto(`${service().gatewayUrl}/inbox`);
  await page.getByLabel('Gateway key or instance token').waitFor();
  expect(await page.getByText('did not start').count()).toBe(0);
  await page.goto(`${service().url}/docs`);
  await page.getByText('did not start').waitFor({ state: 'detached' });
  await page.close();
});

it('a view of the console whose script is blocked says so, and the others stand', async () => {
  const url = await service().outside.file('tone.mp4', clips('tone.mp4'));
  const { jobId } = await service().run({ source: { type: 'url', url }, output: { format: 'mp3' } });
  const first = await browser.context.newPage();
  await signIn(first, service().url, service().key);
  await first.close();
  const views = ['', 'jobs', `jobs/${jobId}`, 'webhooks', 'instances', 'keys', 'usage'];

  /** Goes through all views. @returns those of which a part did not load */
  async function visit(page: Page): Promise<string[]> {
    const missing: string[] = [];
    for (const [index, view] of views.entries()) {
      // By the number it is another page each time, and nothing of the last one is seen.
      await page.goto(`${service().url}/?${index}#/${view}`);
      const fault = page.getByRole('alert').getByText('Part of this page did not load.');
      await fault.or(page.locator('main h1:visible')).first().waitFor();
      if (await fault.isVisible()) missing.push(view);
    }
    return missing;
  }

  const scripts = await scriptsOf(visit);
  expect(scripts.length).toBeGreaterThan(5);
  const missing = new Set<string>();
  for (const script of scripts.slice(1)) {
    const page = await pageWithout(script);
    for (const view of await visit(page)) missing.add(view);
    await page.close();
  }
  expect([...missing].sort()).toEqual([`jobs/${jobId}`, 'webhooks', 'instances', 'keys', 'usage'].sort());
});
