// @module-tag chromium
import { startChromium } from 'soundpost-testing/chromium';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { GATEWAY_API_KEY, useClips, useService } from '../api/api-fixture.ts';
import { everyFault, signIn } from './console-page.ts';
const service = useService({ parts: ['worker', 'gateway'], environment: { WEBHOOK_SCHEDULE_SECONDS: '0,1' } });
const clips = useClips('tone.mp4');
it('looks', async () => {
  const browser = await startChromium({ width: 1180, height: 900 });
  const url = await service().outside.file('a.mp4', clips('tone.mp4'));
  for (let nth = 0; nth < 6; nth += 1) {
    const hook = service().outside.hook(`hooks/audio-${nth}`, () => (nth % 2 ? { status: 204 } : { status: 503, ...(nth === 2 && { headers: { 'retry-after': '3000' } }) }));
    await service().submit({ source: { type: 'url', url }, output: { format: 'mp3' }, options: { webhook: `${hook.url}?x=1` } });
  }
  await until('given up', async () => (await service().call('GET', '/v1/endpoints')).body.data.endpoints.length === 6);
  const page = await browser.context.newPage();
  await signIn(page, service().url, service().key);
  const shot = (name: string) => page.screenshot({ path: `/tmp/h/people-logs/${name}.png`, fullPage: true });
  for (const width of [1180, 320]) {
    await page.setViewportSize({ width, height: 900 });
    for (const [name, hash, wait] of [
      ['webhooks', '#/webhooks', '#endpoints'], ['usage', '#/usage', '#days'],
      ['endpoint', `#/webhooks?endpoint=${encodeURIComponent(`http://127.0.0.1:${service().outside.port}/hooks/audio-0`)}`, '#sent'],
      ['instances', '#/instances', width === 320 ? '#instances' : '#gateway-key']] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator(wait).waitFor();
      expect.soft(await everyFault(page), name).toEqual([]);
      await shot(`${name}-${width}`);
      if (name === 'instances' && width === 1180) { await page.locator('#gateway-key').fill(GATEWAY_API_KEY); await page.keyboard.press('Enter'); await page.locator('#instances').waitFor(); }
    }
  }
  await page.setViewportSize({ width: 1180, height: 900 });
  await page.context().clearCookies();
  await page.evaluate(`location.hash = '#/usage'`);
  await page.locator('#sign-in-again').waitFor();
  await shot('again');
  await browser.close();
});
