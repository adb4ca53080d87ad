// @module-tag chromium
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { startChromium } from 'soundpost-testing/chromium';
import { ffmpeg } from 'soundpost-testing/oracle';
import { it } from 'vitest';
import { useClips, useService } from '../api/api-fixture.ts';
import { sendJson, startTranscriber } from '../followups/transcripts/transcriber-stub.ts';
import { everyFault, signIn } from './console-page.ts';
import { keepJobs } from './kept-jobs.ts';

const transcriber = await startTranscriber();
const service = useService({
  parts: ['worker', 'gateway'],
  names: { 'cdn.example': ['127.0.0.1'], 'media.example': ['127.0.0.1'] },
  environment: { TRANSCRIBER_URL: transcriber.url },
});
const clips = useClips('tone.mp4');
it('looks', async () => {
  const folder = await mkdtemp('/tmp/look-');
  const out = '/tmp/h/console-logs/look';
  transcriber.answer = (response) => {
    const say = (id: number, text: string) => ({ id, start: id * 0.1, end: id * 0.1 + 0.1, text });
    sendJson(response, 200, {
      language: 'english',
      duration: 1,
      text: '',
      segments: [
        'A harbour at night.',
        'Nothing moves, but a lamp that swings above the door of the pilots’ house.',
        'The harbour wakes.',
      ].map((t, i) => say(i, t)),
    });
  };
  const film = join(folder, 'film.mkv');
  const tones = [440, 660].flatMap((hertz) => ['-f', 'lavfi', '-i', `sine=${hertz}:d=2`]);
  await ffmpeg(
    '-v',
    'error',
    ...tones,
    '-map',
    '0',
    '-map',
    '1',
    '-metadata:s:a:0',
    'language=eng',
    '-metadata:s:a:1',
    'language=spa',
    '-c:a',
    'flac',
    film,
  );
  await keepJobs(service(), { key: service().key });
  const url = await service().outside.file('tone.mp4', clips('tone.mp4'));
  const made = await service().run({
    source: { type: 'url', url },
    outputs: [
      { name: 'full', format: 'mp3' },
      { name: 'words', format: 'transcript' },
    ],
  });
  const stuck = await service().outside.stalling(
    'interview-with-the-harbour-master-and-two-of-the-pilots.mp4',
    clips('tone.mp4'),
  );
  await service().submit({ source: { type: 'url', url: stuck.url }, output: { format: 'flac' } });
  const browser = await startChromium({ width: 1280, height: 800 });
  const page = await browser.context.newPage();
  await signIn(page, service().url, service().key);
  const shoot = async (name: string, full = false) => {
    for (const [width, height] of [
      [1280, 800],
      [320, 640],
    ] as const)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.waitForTimeout(150);
        await page.screenshot({ path: `${out}/${name}-${width}-${colorScheme}.png`, fullPage: full });
        const over = await page.evaluate('document.documentElement.scrollWidth - document.body.clientWidth');
        const faults = await everyFault(page);
        if (over !== 0 || faults.length > 0) console.log(name, width, colorScheme, over, faults);
      }
    await page.setViewportSize({ width: 1280, height: 800 });
  };
  const at = (hash: string) => page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await page.setInputFiles('#file', film);
  await page.locator('#show-tracks').click();
  await page.locator('#tracks').waitFor();
  await page.getByText('−19', { exact: true }).click();
  await page.getByText('More choices').click();
  await page.getByText('Right', { exact: true }).click();
  await shoot('new', true);
  await at('#/jobs');
  await page.locator('.row').first().waitFor();
  await shoot('history');
  await at('#/jobs?status=failed');
  await page.getByText('of 60 jobs').waitFor();
  await page.locator('#choose-page').click();
  await shoot('failed');
  await page.locator('#select-all').click();
  await page.getByText('Retry 60').click();
  await page.locator('#confirm-yes').waitFor();
  await page.screenshot({ path: `${out}/confirm.png` });
  await page.locator('#confirm-yes').click();
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${out}/bulk.png` });
  await page.getByText('60 retried').waitFor();
  await shoot('done');
  await at('#/jobs?from=2026-11-01&to=2026-11-30');
  await page.waitForTimeout(500);
  await shoot('days');
  await at(`#/jobs/${made.jobId}`);
  await page.locator('#transcript-search').fill('harbour');
  await shoot('job', true);
  stuck.letGo();
  await browser.close();
}, 200_000);
