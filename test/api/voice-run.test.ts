/** A run of voice notes as a client sees it: its notes, what stops it, and how it goes on (decisions C, `split`). */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { receivedBody } from 'soundpost-testing/received-body';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Hook, type Json, TestService, useClips } from './api-fixture.ts';

const clip = useClips('talk.m4a', 'tone.mp4');
const TOKEN = 'the-token-of-the-other-server';
const REQUEST = { instance: 'theirs', number: '12025550101', split: true };

let theirs: Server;
/** What the gateway was sent, and what it answers from the nth on. */
let sent: Json[] = [];
/** The Idempotency-Keys of it. */
let keys: unknown[] = [];
/** Of the next message. */
let nth = 0;
let refusesFrom = Number.POSITIVE_INFINITY;
let service: TestService;
let talk = '';
let tone = '';
let hook: Hook;

beforeAll(async () => {
  theirs = createServer(async (request, response) => {
    const bytes = await receivedBody(request);
    if (bytes === undefined) return;
    const body = JSON.parse(bytes.toString());
    const isRefused = sent.length >= refusesFrom;
    const key = { remoteJid: 'x@s.whatsapp.net', fromMe: true, id: `NOTE${nth}` };
    if (!isRefused) {
      sent.push(body);
      keys.push(request.headers['idempotency-key']);
      nth += 1;
    }
    response.writeHead(isRefused ? 400 : 201, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isRefused ? { message: 'not today' } : { key, status: 'PENDING' }));
  });
  theirs.listen(0, '127.0.0.1');
  await once(theirs, 'listening');
  service = await TestService.start({
    environment: {
      GATEWAY_URL: `http://127.0.0.1:${(theirs.address() as AddressInfo).port}`,
      GATEWAY_KIND: 'other',
      GATEWAY_EVENTS_TOKEN: TOKEN,
    },
  });
  hook = service.outside.hook('runs');
  talk = await service.outside.file('talk.m4a', clip('talk.m4a'));
  tone = await service.outside.file('tone.mp4', clip('tone.mp4'));
});
afterAll(async () => {
  await service?.close();
  theirs.closeAllConnections();
  theirs.close();
});

const voiceOf = async (jobId: string): Promise<Json> => (await service.job(jobId)).voiceMessage;
const reaches = (jobId: string, status: string): Promise<Json> =>
  until(
    `the run is ${status}`,
    async () => {
      const voice = await voiceOf(jobId);
      return voice?.status === status && voice;
    },
    150_000,
  );
/** Sends the notes of the job to somebody. */
const sendTo = (number: string): Promise<Answer> =>
  service.call('POST', `/v1/jobs/${jobId}/voice-message`, { json: { ...REQUEST, number } });
/** The job of all these tests: eight minutes are encoded once. */
let jobId = '';

it('is sent note by note, and told once as a whole', async () => {
  jobId = await service.submit({
    source: { type: 'url', url: talk },
    // The audio as it is: what costs is the rendition for the chat.
    output: { format: 'm4a' },
    options: { voiceMessage: { ...REQUEST, quoted: { key: { id: 'Q1' } } }, webhook: hook.url },
  });
  const voice = await reaches(jobId, 'sent');
  expect(voice.parts).toHaveLength(3);
  expect(voice).toMatchObject({ key: { id: 'NOTE0' }, fitsVoiceBubble: true, attempts: 3, error: null });
  expect(
    voice.parts.map(({ key, status, fitsVoiceBubble }: Json) => [key.id, status, fitsVoiceBubble]),
  ).toEqual([
    ['NOTE0', 'sent', true],
    ['NOTE1', 'sent', true],
    ['NOTE2', 'sent', true],
  ]);
  const seconds = voice.parts.reduce((sum: number, part: Json) => sum + part.seconds, 0);
  expect(seconds).toBeCloseTo((await service.job(jobId)).outputFile.duration, 1);
  // The gateway's interface has no such fields.
  expect(sent.some((body) => 'split' in body)).toBe(false);
  expect(sent.map((body) => 'quoted' in body)).toEqual([true, false, false]);
  // One webhook tells of the run, whatever many notes it has.
  const told = (await hook.got(2)).map(({ json }) => [json.event, json.voiceMessage?.parts.length]);
  // Each is sent by itself, and may come before the other.
  expect(told.toSorted()).toEqual([
    ['job.completed', undefined],
    ['voice.updated', 3],
  ]);
  const whole = await service.call('GET', `/v1/download/${jobId}?rendition=voice`);
  expect(Buffer.concat(sent.map(({ audio }) => Buffer.from(audio, 'base64'))).equals(whole.bytes)).toBe(true);
});

it('stops at a note that fails, and goes on there when it is sent again', async () => {
  sent = [];
  nth = 0;
  refusesFrom = 1;
  expect((await sendTo('12025550102')).status).toBe(202);
  const stopped = await reaches(jobId, 'failed');
  expect(stopped).toMatchObject({ key: { id: 'NOTE0' }, error: { message: 'not today' } });
  expect(stopped.parts.map(({ status, error }: Json) => [status, error?.code ?? null])).toEqual([
    ['sent', null],
    ['failed', 'HTTP_400'],
    ['failed', 'EARLIER_NOTE_FAILED'],
  ]);
  refusesFrom = Number.POSITIVE_INFINITY;
  // Whoever asks at the same moment.
  const asked = await Promise.all(Array.from({ length: 4 }, () => sendTo('12025550102')));
  expect(asked.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
  const voice = await reaches(jobId, 'sent');
  expect(voice.parts.map(({ key }: Json) => key.id)).toEqual(['NOTE0', 'NOTE1', 'NOTE2']);
  // To somebody else it begins anew, and so does what was sent as a whole.
  const before = sent.length;
  await sendTo('12025550103');
  await until('all were sent again', () => sent.length === before + 3);
});

it.each([
  [1, /\.1-1:12025550103$/],
  [0, /-voice-\w+-1:12025550103$/],
])(
  'of which the network gave note %i up has failed there, and that note alone is sent again',
  async (part, idempotencyKey) => {
    const { key } = (await reaches(jobId, 'sent')).parts[part];
    const event = { event: 'messages.update', data: { key, status: 'ERROR' } };
    await service.call('POST', `/hooks/gateway?token=${TOKEN}`, { key: null, json: event });
    const failed = await voiceOf(jobId);
    expect(failed.status).toBe('failed');
    const expected = [0, 1, 2].map((nth) => (nth === part ? 'failed' : 'sent'));
    expect(failed.parts.map(({ status }: Json) => status)).toEqual(expected);
    sent = [];
    keys = [];
    await sendTo('12025550103');
    const voice = await reaches(jobId, 'sent');
    expect(voice.parts[part].key.id).not.toBe(key.id);
    expect(sent).toHaveLength(1);
    // The gateway would answer a key that it knows as before.
    expect(keys).toEqual([expect.stringMatching(idempotencyKey)]);
  },
);

it('cannot be made of a job that was submitted without it', async () => {
  const other = await service.submit({ source: { type: 'url', url: tone }, output: { format: 'm4a' } });
  await service.reaches(other, 'completed');
  for (const field of ['split', 'trimSilence']) {
    const json = { instance: 'theirs', number: '12025550101', [field]: true };
    const { status, body } = await service.call('POST', `/v1/jobs/${other}/voice-message`, { json });
    expect([status, body.error?.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(JSON.stringify(body.error)).toContain(`options.voiceMessage.${field}`);
  }
});
