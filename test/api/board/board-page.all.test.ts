// @module-tag chromium
/** The board of the queues in a real browser. */

import { startChromium } from 'soundpost-testing/chromium';
import { until } from 'soundpost-testing/until';
import { expect, it, onTestFinished } from 'vitest';
import { queueNames } from '../../../src/jobs/names.ts';
import { useService } from '../api-fixture.ts';

const ADMIN_KEY = 'the key of these tests: ä';
const service = useService({ environment: { ADMIN_KEY } });

it('it shows the queues and a job, within its policy but for the font from elsewhere', async () => {
  const url = service().outside.on('/missing.mp4', (_incoming, response) => response.writeHead(404).end());
  const { jobId } = await service().run({ source: { type: 'url', url }, output: { format: 'mp3' } });
  const browser = await startChromium({ width: 1200, height: 800 });
  onTestFinished(() => browser.close());
  const page = await browser.context.newPage();
  const refused: string[] = [];
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) refused.push(message.text());
  });
  const authorization = `Basic ${Buffer.from(`anybody:${ADMIN_KEY}`).toString('base64')}`;
  await page.setExtraHTTPHeaders({ authorization });
  await page.goto(`${service().url}/admin/queues/queue/extract?status=failed`);
  const shown = await until('the job is shown', async () => {
    const text = await page.locator('body').innerText();
    return text.includes(jobId) && text;
  });
  for (const name of Object.values(queueNames)) expect(shown.toLowerCase()).toContain(name);
  expect(refused.filter((text) => !text.includes('fonts.googleapis.com'))).toEqual([]);
});
