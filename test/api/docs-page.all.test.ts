// @module-tag chromium
/** The page at /docs in a browser. */

import { startChromium } from 'soundpost-testing/chromium';
import { lookAtReference } from 'soundpost-testing/reference-page';
import { expect, it } from 'vitest';
import { useService } from './api-fixture.ts';

const service = useService({ parts: [] });

it.each([
  ['a phone', { width: 390, height: 844 }],
  ['a desk', { width: 1280, height: 900 }],
])(
  'shows on %s what there is, asks nobody else and breaks no policy',
  async (device, viewport) => {
    const { body } = await service().call('GET', '/openapi.json', { key: null });
    const summaries = Object.values<Record<string, { summary?: string }>>(body.paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ summary }) => summary ?? []);
    expect(summaries.length).toBeGreaterThan(20);
    const errors = ['INVALID_REQUEST', 'Fix the fields that details lists.'];
    // On a phone the list of operations is folded away.
    const awaited = device === 'a desk' ? [...summaries, ...errors] : errors;
    const seen = await lookAtReference(`${service().url}/docs`, viewport, awaited);
    expect(seen.complaints).toEqual([]);
    expect(seen.origins).toEqual([new URL(service().url).origin]);
    expect(seen.width).toBe(viewport.width);
  },
  120_000,
);

it('sends a request of its reader to this server, by no proxy, and shows the code for it', async () => {
  const browser = await startChromium({ width: 1400, height: 1000 });
  try {
    const page = await browser.context.newPage();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(`${request.method()} ${request.url()}`));
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    await page.goto(`${service().url}/docs#tag/service/GET/v1/usage`);
    await page.getByText(`curl ${service().url}/v1/usage`).first().waitFor();
    await page
      .getByRole('button', { name: /Test Request.*\/v1\/usage/ })
      .first()
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.locator('input[placeholder][autocomplete=off]').first().fill(service().key);
    asked.length = 0;
    await dialog.getByRole('button', { name: /^Send/ }).first().click();
    // The name of the key that was typed in.
    await dialog.getByText('"everything"').first().waitFor();
    expect(asked).toEqual([`GET ${service().url}/v1/usage`]);
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
  }
}, 120_000);
