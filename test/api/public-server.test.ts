/** The service in front of a messaging server that others wrote (GATEWAY_KIND=other; decisions C). */
import { createHash } from 'node:crypto';
import { type PublicServer, startPublicServer } from 'soundpost-testing/public-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Json, TestService, useClips } from './api-fixture.ts';

const TOKEN = 'the-token-of-the-other-server';
const KEY = 'the-key-of-the-other-server';
const JOBS = 4;

const clip = useClips('tone.mp4');
let tone = '';
let service: TestService;
let theirs: PublicServer;

beforeAll(async () => {
  theirs = await startPublicServer(KEY, () => `${service.url}/hooks/gateway?token=${TOKEN}`);
  service = await TestService.start({
    environment: {
      GATEWAY_URL: theirs.url,
      GATEWAY_KIND: 'other',
      GATEWAY_BRAND: 'WhatsApp',
      GATEWAY_API_KEY: KEY,
      GATEWAY_EVENTS_TOKEN: TOKEN,
    },
  });
  tone = await service.outside.file('tone.mp4', clip('tone.mp4'));
});
afterAll(async () => {
  await service?.close();
  await theirs?.close();
});

const job = (number: string, more: Json = {}): Json => ({
  source: { type: 'url', url: tone },
  output: { format: 'mp3' },
  options: { voiceMessage: { instance: 'theirs', number, ...more } },
});

it(`${JOBS} jobs reach PLAYED, and what was sent is the rendition to the byte`, async () => {
  const numbers = Array.from({ length: JOBS }, (_, nth) => `+1202555${1000 + nth}`);
  const jobIds = await Promise.all(numbers.map((number) => service.submit(job(number, { mentioned: [] }))));
  for (const jobId of jobIds) {
    const { voiceMessage } = await until(`${jobId} was played`, async () => {
      const now = await service.job(jobId);
      return now.voiceMessage.messageStatus === 'PLAYED' && now;
    });
    expect(voiceMessage).toMatchObject({ status: 'sent', fitsVoiceBubble: true, error: null });
    const rendition = await service.call('GET', `/v1/download/${jobId}?rendition=voice`);
    expect(theirs.sent.get(voiceMessage.key.id)).toBe(
      createHash('sha256').update(rendition.bytes).digest('hex'),
    );
  }
  expect(theirs.sent.size).toBe(JOBS);
});

it.each([
  ['a number that is not there', '+12025550404', '+12025550404 is not on the network'],
  ['an error that the server lost', '+12025550500', 'Bad Request'],
])('%s fails with words, never with [object Object]', async (_what, number, words) => {
  const jobId = await service.submit(job(number));
  const { voiceMessage } = await until('the sending has failed', async () => {
    const now = await service.job(jobId);
    return now.voiceMessage.status === 'failed' && now;
  });
  expect(voiceMessage.error).toEqual({ code: 'HTTP_400', message: words });
});

it('a message that is given up after it was sent fails with the network’s words, and is announced once', async () => {
  const hook = service.outside.hook('given-up');
  const { options, ...more } = job('+12025550131');
  const jobId = await service.submit({ ...more, options: { ...options, webhook: hook.url } });
  const { voiceMessage } = await until('the sending has failed', async () => {
    const now = await service.job(jobId);
    return now.voiceMessage.status === 'failed' && now;
  });
  const error = { code: '131026', message: 'nobody is there' };
  expect(voiceMessage).toMatchObject({ attempts: 1, messageStatus: 'ERROR', error });
  const tell = () =>
    service.call('POST', `/hooks/gateway?token=${TOKEN}`, {
      key: null,
      json: { event: 'messages.update', data: { keyId: voiceMessage.key.id, status: 'ERROR' } },
    });
  // The server repeats itself.
  expect((await tell()).status).toBe(204);
  const isFailure = ({ json }: { json: Json }) => json.voiceMessage?.status === 'failed';
  const told = await until('the failure is announced', () => hook.received.find(isFailure));
  expect(told.json).toMatchObject({ event: 'voice.updated', jobId, voiceMessage });
  const { body } = await service.call('GET', `/v1/jobs/${jobId}/deliveries`);
  const ids = body.data.deliveries.map(({ deliveryId }: Json) => deliveryId);
  expect(ids.filter((id: string) => id.endsWith('-undelivered-webhook'))).toHaveLength(1);
});
