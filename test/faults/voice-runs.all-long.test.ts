/** The worker dies at random moments while it sends runs of voice notes: each note reaches the chat once, in its place (decisions C, `split`). */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from 'soundpost-testing/client';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ada, messagesTo } from '../end-to-end/inbox.ts';
import { isLong, randomFrom, report, runs, seed } from './runs.ts';
import { GATEWAY_KEY, Stand } from './stand.ts';

const KILLS = runs(2, 200);
/** How long a run is being sent, from the request on, when nothing dies. */
const MOMENT_MS = 2500;
const TALK_SECONDS = 900;

const seeded = seed();
const random = randomFrom(seeded);
let stand: Stand;
beforeAll(async () => {
  process.stdout.write(`FAULTS_SEED=${seeded}\n`);
  stand = await Stand.start();
  const noise = `anoisesrc=c=pink:r=16000:d=${TALK_SECONDS}:seed=1,volume='0.2+0.8*gt(mod(t,7),1)':eval=frame`;
  const hour = await cachedMedia('hour.m4a', ['-f', 'lavfi', '-i', noise, '-c:a', 'aac', '-b:a', '64k']);
  await copyFile(hour, join(stand.folder, 'videos', 'hour.m4a'));
}, 120_000);
afterAll(() => stand.close());

const request = { instance: 'main', number: ada.number, split: true };

async function voiceOf(jobId: string): Promise<Json> {
  return (await stand.ask(`/v1/jobs/${jobId}`)).voiceMessage;
}

const untilSent = (jobId: string): Promise<Json> =>
  until(
    'the run is sent',
    async () => {
      const voice = await voiceOf(jobId).catch(() => undefined);
      if (voice?.status === 'failed' || voice?.status === 'unknown') throw new Error(JSON.stringify(voice));
      return voice?.status === 'sent' && voice;
    },
    120_000,
  );

it('each note of each run is in the chat once, and in order', {
  timeout: isLong ? 3_600_000 : 240_000,
}, async () => {
  const { body } = await stand.client.call('POST', '/v1/extract', {
    source: { type: 'url', url: stand.web.url('hour.m4a') },
    output: { format: 'mp3' },
    options: { voiceMessage: request },
  });
  const { jobId } = body.data;
  const first = await untilSent(jobId);
  const notes = first.parts.length;
  expect(notes).toBeGreaterThan(4);
  const idsOf = ({ parts }: Json): string[] => parts.map(({ key }: Json) => key.id);
  const expected = idsOf(first);
  let runs = 1;
  let kills = 0;
  while (kills < KILLS) {
    const before = await voiceOf(jobId);
    await stand.client.call('POST', `/v1/jobs/${jobId}/voice-message`, request);
    for (let nth = 0; nth < 2; nth += 1) {
      await delay(random() * MOMENT_MS);
      await stand.workers[0]?.kill();
      kills += 1;
    }
    await stand.workers[0]?.ready();
    const voice = await untilSent(jobId);
    expect(voice.key.id).not.toBe(before.key.id);
    expected.push(...idsOf(voice));
    runs += 1;
    // The inbox shows the latest messages of a chat: one that came twice, or in another place, moves all before it.
    const inChat = await messagesTo(stand.gatewayUrl, ada.jid, { apikey: GATEWAY_KEY });
    expect(inChat.map(({ key }) => key.id)).toEqual(expected.slice(-inChat.length));
    expect(inChat.length).toBe(Math.min(expected.length, 200));
  }
  report('SIGKILL of the worker while it sends runs of notes', {
    seed: seeded,
    kills,
    runs,
    notes: expected.length,
    doubled: 0,
    missing: 0,
  });
});
