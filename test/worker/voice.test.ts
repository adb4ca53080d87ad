/** Handing a result to the messaging gateway: what it is sent, and what each of its answers means (decisions C). */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { VoiceMessageRequest } from 'soundpost-contract/job-request';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { withEdition } from 'soundpost-kit/redis/record';
import { UrlSigner } from 'soundpost-kit/signing/signatures';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { receivedBody } from 'soundpost-testing/received-body';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import { tryOnce } from '../../src/followups/kind.ts';
import { voiceKind } from '../../src/followups/kinds/voice.ts';
import { hasVoiceEnded, raiseMessageStatus, readVoiceState } from '../../src/followups/state/voice.ts';
import { recordKey } from '../../src/jobs/bullmq-internals.ts';
import { readJobRecord } from '../../src/jobs/job-record.ts';
import { readPayload, VoicePayload } from '../../src/jobs/payloads.ts';
import { resultOf } from '../jobs/job-result.ts';
import { payloadOf } from '../jobs/queue-fixture.ts';
import { logger, makeSurroundings, type Surroundings } from './worker-fixture.ts';

const JOB = 'job_0123456789abcdef';
const VOICE_KEY = `files/${JOB}/one.voice.ogg`;
const KEY = { remoteJid: '12025550101@people.loopback', fromMe: true, id: 'MESSAGE1' };
const SENT = { key: KEY, message: {}, messageTimestamp: '1', status: 'PENDING' };
const request = {
  ...{ instance: 'main', number: '12025550101', delay: 0, quoted: { key: { id: 'Q1' } } },
  ...{ mentioned: ['12025550102'], mentionsEveryOne: true },
};

interface Seen {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

let redisServer: TestRedis;
let redis: Redis;
let around: Surroundings;
let seen: Seen[];
let answer: (response: ServerResponse, nth: number) => void;
let url = '';
let closeGateway: () => Promise<void>;

/** Of an earlier try nobody knows any more. */
async function askAnew(part = 0): Promise<void> {
  await redis.flushall();
  const queue = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
  await queue.addVoice({
    ...{ tenant: 'tenant01', jobId: JOB, sendId: `${JOB}-voice`, part },
    request: VoiceMessageRequest.parse(request),
  });
  await queue.close();
}

beforeAll(async () => {
  redisServer = await startTestRedis();
  redis = connectPatiently(redisServer.url);
  around = await makeSurroundings();
  await around.storage.write(VOICE_KEY, Readable.from([Buffer.from('OggS voice')]));
});
afterAll(async () => {
  await closeRedis(redis);
  await redisServer.close();
  await around.close();
});
beforeEach(async () => {
  await askAnew();
  seen = [];
  const server = createServer(async (incoming, response) => {
    const body = await receivedBody(incoming);
    if (body === undefined) return;
    seen.push({ path: incoming.url ?? '', headers: incoming.headers, body });
    answer(response, seen.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let open = true;
  closeGateway = async () => {
    if (!open) return;
    open = false;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
});
afterEach(async () => {
  expect(around.left()).toEqual([]);
  await closeGateway();
});

interface Setting {
  readonly kind: 'soundpost' | 'other';
  readonly onUnknown?: 'keep' | 'resend';
  readonly last?: boolean;
  readonly part?: number;
  /** null: the job was not asked for a voice message. */
  readonly voiceKey?: string | null;
  readonly brand?: string;
  readonly answerMarginMs?: number;
  readonly signal?: AbortSignal;
}

/** Of the job, as it has ended. */
function recordWith(voice: object | null) {
  const record = readJobRecord(JOB, {
    data: JSON.stringify(payloadOf('tenant01', { voiceMessage: request })),
    timestamp: '1',
    spConfirmed: '1',
    processedOn: '2',
    finishedOn: '3',
    returnvalue: JSON.stringify({ ...resultOf(JOB), voice }),
  });
  if (record === undefined) throw new Error('no record');
  return record;
}

const payloadWith = (part: number) =>
  ({
    version: 1,
    tenant: 'tenant01',
    jobId: JOB,
    sendId: `${JOB}-voice`,
    part,
    round: 0,
    request,
  }) satisfies VoicePayload;

async function deliver({
  kind,
  onUnknown = 'keep',
  last = false,
  part = 0,
  voiceKey = VOICE_KEY,
  brand = 'Messenger',
  signal = new AbortController().signal,
  ...margin
}: Setting) {
  const voice = voiceKey === null ? null : { storageKey: voiceKey, fitsVoiceBubble: true, seconds: 1 };
  const record = recordWith(voice);
  const sending = voiceKind({
    redis,
    storage: around.storage,
    signer: new UrlSigner(Buffer.alloc(32, 1), 'https://sound.example'),
    gateway: { url, kind, brand, apiKey: 'the gateway key', ...margin },
    onUnknown,
    workspaces: around.workspaces,
    logSeconds: 60,
    logger,
    readJob: async () => record,
    followUps: { addVoice: async () => undefined, addWebhook: async () => undefined },
  });
  return tryOnce(sending, payloadWith(part), { number: last ? 10 : 1, last }, signal);
}

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
const cut = (response: ServerResponse) => response.socket?.destroy();

const sent = { outcome: 'done', result: { status: 'sent', key: KEY, messageStatus: 'PENDING', error: null } };
const retry = (retryAfterSeconds?: number) => ({
  outcome: 'retry',
  error: expect.any(String),
  ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
});
const failed = (code: string, message: unknown = expect.any(String)) => ({
  outcome: 'done',
  result: { status: 'failed', key: null, messageStatus: null, error: { code, message } },
});
const unknown = { outcome: 'done', result: { status: 'unknown', key: null, error: { code: 'ANSWER_LOST' } } };
const refusal = {
  status: 400,
  error: 'Bad Request',
  code: 'invalid_number',
  response: { message: ['number: is unknown'] },
};

describe('an answer of the gateway', () => {
  it.each([
    ['200', json(200, SENT), sent, sent],
    ['201', json(201, SENT), sent, sent],
    ['429 with Retry-After', json(429, {}, { 'retry-after': '7' }), retry(7), retry(7)],
    [
      '503 with Retry-After as a date',
      (response: ServerResponse) =>
        json(503, {}, { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() })(response),
      { outcome: 'retry', retryAfterSeconds: expect.closeTo(3_600, -2) },
      { outcome: 'retry', retryAfterSeconds: expect.closeTo(3_600, -2) },
    ],
    [
      '429 without',
      json(429, {}),
      { ...retry(), retryAfterSeconds: undefined },
      { ...retry(), retryAfterSeconds: undefined },
    ],
    ['503', json(503, {}), retry(), retry()],
    [
      '400',
      json(400, refusal),
      failed('invalid_number', 'number: is unknown'),
      failed('invalid_number', 'number: is unknown'),
    ],
    [
      '401 that says nothing',
      (response: ServerResponse) => response.writeHead(401).end(),
      failed('HTTP_401'),
      failed('HTTP_401'),
    ],
    [
      '404',
      json(404, { error: 'Not Found' }),
      failed('HTTP_404', 'Not Found'),
      failed('HTTP_404', 'Not Found'),
    ],
    ['409 because the same key is at work', json(409, { code: 'idempotency_in_progress' }), retry(), retry()],
    ['413', json(413, {}), failed('HTTP_413'), failed('HTTP_413')],
    ['501', json(501, {}), failed('HTTP_501'), failed('HTTP_501')],
    ['500', json(500, {}), retry(), unknown],
    ['502', json(502, {}), retry(), unknown],
    ['504', json(504, {}), retry(), unknown],
    ['that cannot be read', json(200, { hello: 'world' }), retry(), unknown],
    ['that never comes, the connection being cut', cut, retry(), unknown],
  ])('%s', async (_what, play, ofOurs, ofAnother) => {
    answer = play;
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(ofOurs);
    await askAnew();
    expect(await deliver({ kind: 'other' })).toMatchObject(ofAnother);
    expect(seen).toHaveLength(2);
  });

  it.each(Object.entries(gatewayErrorCatalogue))('of our own gateway, %s', async (code, { httpStatus }) => {
    const answered = { status: httpStatus, error: 'a phrase', code, response: { message: ['its words'] } };
    answer = json(httpStatus, answered);
    const isNotNow = [429, 503].includes(httpStatus) || code === 'idempotency_in_progress';
    const isLost = [500, 504].includes(httpStatus);
    const expected = isNotNow
      ? { outcome: 'retry', error: `${code}: its words` }
      : isLost
        ? { outcome: 'retry', error: 'ANSWER_LOST: its words' }
        : failed(code, 'its words');
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(expected);
  });

  it.each([
    [409, failed('HTTP_409')],
    [413, failed('HTTP_413')],
    [429, { outcome: 'retry', error: 'HTTP_429: the gateway answered 429' }],
    [502, { outcome: 'retry', error: 'ANSWER_LOST: the gateway answered 502' }],
    [503, { outcome: 'retry', error: 'HTTP_503: the gateway answered 503' }],
    [504, { outcome: 'retry', error: 'ANSWER_LOST: the gateway answered 504' }],
  ])('%i of a proxy in between, which has no code of ours', async (status, expected) => {
    answer = json(status, '<html>');
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(expected);
  });

  // As the public server 2.3.6 answers a number that is not there, and what it throws inside of what it throws.
  it.each([
    [{ exists: false, jid: '1@s.whatsapp.net', number: '1' }, '1 is not on the network'],
    ['[object Object]', 'Bad Request'],
    [['requires property "audio"', 'delay: is wrong'], 'requires property "audio"; delay: is wrong'],
    [{ code: 7 }, '{"code":7}'],
    ['TypeError: [object Object] is no number', 'TypeError: … is no number'],
    ['[object Object],[object Object]', 'Bad Request'],
    [{ exists: false, number: { digits: 1 } }, 'the number is not on the network'],
    [{ message: { message: ['inside'] } }, 'inside'],
  ])('that refuses with %j says why', async (message, words) => {
    answer = json(400, { status: 400, error: 'Bad Request', response: { message: [message].flat() } });
    expect(await deliver({ kind: 'other' })).toMatchObject(failed('HTTP_400', words));
  });

  it.each([
    ['nested without an end', `${'{"message":'.repeat(20_000)}1${'}'.repeat(20_000)}`],
    ['longer than any answer is', JSON.stringify({ message: 'a'.repeat(5 * 1024 * 1024) })],
    ['no JSON', '<html><h1>Bad Request</h1></html>'],
  ])('that refuses with what is %s is a refusal all the same', async (_what, body) => {
    answer = (response) => response.writeHead(400).end(`{"response":{"message":${body}}}`);
    expect(await deliver({ kind: 'other' })).toMatchObject(failed('HTTP_400', 'the gateway answered 400'));
  });

  it('cannot come from a gateway that is not there: that is tried again, with either', async () => {
    await closeGateway();
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(retry());
    expect(await deliver({ kind: 'other' })).toMatchObject(retry());
  });
});

it('a message that Redis has lost in a failover is not sent: its job is completed again, and asks for it', async () => {
  await redis.flushall();
  await expect(deliver({ kind: 'soundpost' })).rejects.toThrow('Redis has lost this voice message');
  expect(seen).toEqual([]);
  expect(await redis.keys('*')).toEqual([]);
});

describe('a message that may have been sent', () => {
  it('is sent again where the operator chose so', async () => {
    answer = cut;
    expect(await deliver({ kind: 'other', onUnknown: 'resend' })).toMatchObject({ outcome: 'retry' });
  });

  it('by a worker that was killed is unknown with another server, and asked for again with ours', async () => {
    answer = json(200, SENT);
    // A worker was killed between its request and its note of the answer.
    await deliver({ kind: 'other' });
    expect(await deliver({ kind: 'other' })).toMatchObject(unknown);
    expect(seen).toHaveLength(1);
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(sent);
    expect(seen).toHaveLength(2);
  });

  it('is broken off by a worker that stops, and asked for again with ours', async () => {
    const stopping = new AbortController();
    answer = () => stopping.abort(new Error('the worker stops'));
    const broken = deliver({ kind: 'soundpost', signal: stopping.signal });
    await expect(broken).rejects.toThrow('the worker stops');
    answer = json(200, SENT);
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(sent);
  });

  it('is not broken off where nobody could know then whether it was sent', async () => {
    const stopping = new AbortController();
    answer = (response) => {
      stopping.abort(new Error('the worker stops'));
      json(200, SENT)(response);
    };
    expect(await deliver({ kind: 'other', signal: stopping.signal })).toMatchObject(sent);
  });

  it('was not by a gateway that had no time: the next try is an ordinary one', async () => {
    answer = (response, nth) => (nth === 1 ? json(503, {})(response) : json(200, SENT)(response));
    expect(await deliver({ kind: 'other' })).toMatchObject(retry());
    expect(await deliver({ kind: 'other' })).toMatchObject(sent);
  });
});

describe('a message whose answer was lost', () => {
  const lostThen = (play: (response: ServerResponse) => void) => {
    answer = (response, nth) => (nth === 1 ? cut(response) : play(response));
  };

  it.each([
    ['the gateway is busy until the last try', json(503, {})],
    ['the gateway refuses the last try', json(401, {})],
  ])('is unknown, not failed, when %s: the first one may have been sent', async (_what, play) => {
    lostThen(play);
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(retry());
    expect(await deliver({ kind: 'soundpost', last: true })).toMatchObject(unknown);
    expect(seen).toHaveLength(2);
  });

  it('stays in doubt over a try that the gateway did not take, and is sent when it answers', async () => {
    lostThen(json(503, {}));
    await deliver({ kind: 'soundpost' });
    await deliver({ kind: 'soundpost' });
    answer = json(200, SENT);
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(sent);
  });

  it('is unknown when the rendition has expired since', async () => {
    answer = cut;
    await deliver({ kind: 'soundpost' });
    expect(await deliver({ kind: 'soundpost', voiceKey: 'files/gone/gone.ogg' })).toMatchObject(unknown);
  });

  const timeout = { code: 'timeout', response: { message: ['it took too long'] } };
  /** What tells its next key from this one. */
  const sentAgain = async () => {
    const id = `${JOB}-voice`;
    await redis.hset(recordKey('voice', id), { returnvalue: '{"status":"unknown"}', finishedOn: 4 });
    const queue = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
    await queue.goOnWithVoice(id, 0, VoiceMessageRequest.parse(request), false);
    const stored = await queue.queues.voice.find(id);
    await queue.close();
    const { round, keyRound } = readPayload(VoicePayload, stored?.data);
    return [round, keyRound];
  };

  it('is asked for until the last try while our gateway runs out of time, always with the same key', async () => {
    answer = json(504, timeout);
    for (let nth = 1; nth <= 3; nth += 1) {
      expect(await deliver({ kind: 'soundpost' })).toMatchObject(retry());
    }
    const { result } = (await deliver({ kind: 'soundpost', last: true })) as { result?: object };
    expect(result).toMatchObject({ status: 'unknown', error: { message: 'it took too long' } });
    expect(seen.map(({ headers }) => headers['idempotency-key'])).toEqual(
      Array(4).fill(`${JOB}-voice:12025550101`),
    );
    expect(await sentAgain()).toEqual([1, undefined]);
  });

  it('is unknown when our gateway says that a repetition sends nothing, and has another key when it is sent again', async () => {
    answer = json(504, { ...timeout, retryable: false });
    expect(await deliver({ kind: 'soundpost' })).toMatchObject(unknown);
    expect(await sentAgain()).toEqual([1, 1]);
  });

  it('is lost when the gateway takes longer than it may', async () => {
    answer = () => undefined;
    expect(await deliver({ kind: 'other', answerMarginMs: 50 })).toMatchObject(unknown);
  });
});

describe('the last try', () => {
  it.each([
    ['that meets a busy gateway has failed', json(503, {}), failed('GATEWAY_UNAVAILABLE')],
    ['whose answer is lost is unknown', cut, unknown],
  ])('%s', async (_what, play, outcome) => {
    answer = play;
    expect(await deliver({ kind: 'soundpost', last: true })).toMatchObject(outcome);
  });
});

describe('what the gateway is sent', () => {
  it('by our own protocol is a form with the file, and a key that makes a repetition safe', async () => {
    answer = json(200, SENT);
    await deliver({ kind: 'soundpost' });
    const [{ path, headers, body } = { path: '', headers: {}, body: Buffer.alloc(0) }] = seen;
    expect(path).toBe('/message/sendMessengerAudio/main');
    expect(headers).toMatchObject({
      apikey: 'the gateway key',
      'idempotency-key': `${JOB}-voice:12025550101`,
    });
    const form = await new Response(new Uint8Array(body), {
      headers: { 'content-type': String(headers['content-type']) },
    }).formData();
    expect(form.get('number')).toBe('12025550101');
    expect(form.get('delay')).toBe('0');
    expect(JSON.parse(String(form.get('quoted')))).toEqual(request.quoted);
    expect(form.has('instance')).toBe(false);
    const file = form.get('file');
    expect(file).toBeInstanceOf(Blob);
    expect(file instanceof Blob && (await file.text())).toBe('OggS voice');
  });

  it('of a run after its first note quotes and mentions nobody', async () => {
    answer = json(201, SENT);
    await askAnew(1);
    await deliver({ kind: 'other', part: 1 });
    const {
      instance: _,
      quoted: _quoted,
      mentioned: _mentioned,
      mentionsEveryOne: _all,
      ...fields
    } = request;
    expect(JSON.parse(seen[0]?.body.toString() ?? '')).toEqual({
      ...fields,
      audio: expect.any(String),
      encoding: false,
    });
  });

  it('by the documents’ protocol is JSON with the file as base64, under the brand of that server', async () => {
    answer = json(201, SENT);
    await deliver({ kind: 'other', brand: 'WhatsApp' });
    const [{ path, headers, body } = { path: '', headers: {}, body: Buffer.alloc(0) }] = seen;
    expect(path).toBe('/message/sendWhatsAppAudio/main');
    expect(headers).toMatchObject({ apikey: 'the gateway key', 'content-type': 'application/json' });
    const { instance: _, ...fields } = request;
    expect(JSON.parse(body.toString())).toEqual({
      ...fields,
      audio: Buffer.from('OggS voice').toString('base64'),
      // The public server encodes again what it is not told to leave.
      encoding: false,
    });
  });

  it('is to be encoded by another server where the job was not asked for a voice message: phones play no MP3 as one', async () => {
    answer = json(201, SENT);
    const { storageKey } = resultOf(JOB).outputFile;
    await around.storage.write(storageKey, Readable.from([Buffer.from('an MP3')]));
    await deliver({ kind: 'other', voiceKey: null });
    const body = JSON.parse(seen[0]?.body.toString() ?? '{}');
    expect(body.audio).toBe(Buffer.from('an MP3').toString('base64'));
    expect(body).not.toHaveProperty('encoding');
  });

  it('is an address where the file is over 12 MiB', async () => {
    answer = json(201, SENT);
    const large = `files/${JOB}/large.voice.ogg`;
    await around.storage.write(large, Readable.from([Buffer.alloc(12 * 1024 * 1024 + 1)]));
    await deliver({ kind: 'other', voiceKey: large });
    const { audio } = JSON.parse(seen[0]?.body.toString() ?? '{}');
    expect(audio).toMatch(
      new RegExp(`^https://sound\\.example/v1/download/${JOB}\\?rendition=voice&expires=\\d+&signature=`),
    );
  });

  it('is nothing when the rendition has expired', async () => {
    answer = json(200, SENT);
    expect(await deliver({ kind: 'soundpost', voiceKey: 'files/gone/gone.ogg' })).toMatchObject(
      failed('FILE_EXPIRED'),
    );
    expect(seen).toEqual([]);
  });
});

it('a word about the message that came before the answer is kept', async () => {
  await redis.set(ownKey('message-status', KEY.id), 'DELIVERY_ACK');
  answer = json(200, SENT);
  await deliver({ kind: 'soundpost' });
  expect(await redis.get(ownKey('message-status', KEY.id))).toBe('DELIVERY_ACK');
});

describe('a message that the network gives up', () => {
  const error = { code: '131026', message: 'nobody is there' };
  const giveUp = () => raiseMessageStatus(redis, { id: KEY.id, status: 'ERROR', error }, 60);

  it('before the answer has come has failed with the network’s words', async () => {
    await giveUp();
    answer = json(200, SENT);
    expect(await deliver({ kind: 'soundpost' })).toMatchObject({
      outcome: 'done',
      result: { status: 'failed', key: KEY, messageStatus: 'ERROR', error },
    });
  });

  it('after it is known as the part of the voice message that it is', async () => {
    answer = json(200, SENT);
    await deliver({ kind: 'soundpost' });
    const origin = { jobId: JOB, sendId: `${JOB}-voice`, part: 0, round: 0, key: KEY, attempts: 1 };
    expect(await giveUp()).toMatchObject({ status: 'ERROR', origin, error });
    // What comes later changes nothing.
    const late = await raiseMessageStatus(redis, { id: KEY.id, status: 'READ' }, 60);
    expect(late.status).toBe('ERROR');
  });

  it('stops its run, but for the note that is queued already', async () => {
    await askAnew(1);
    await giveUp();
    const parts = [0, 1, 2].map((nth) => ({ offset: nth, size: 1, seconds: 1, fitsVoiceBubble: true }));
    const voice = { storageKey: VOICE_KEY, fitsVoiceBubble: true, seconds: 3, parts };
    const outcome = { status: 'sent', key: KEY, messageStatus: 'PENDING', error: null } as const;
    const first = { atm: 1, finishedOn: 4, returnvalue: JSON.stringify(withEdition(outcome)) };
    await redis.hset(recordKey('voice', `${JOB}-voice`), first);
    const record = recordWith(voice);
    const run = await readVoiceState(redis, record);
    expect(run?.status).toBe('failed');
    expect(run?.parts?.map((note) => [note.status, note.error?.code ?? null])).toEqual([
      ['failed', error.code],
      ['pending', null],
      ['failed', 'EARLIER_NOTE_FAILED'],
    ]);
    // Its audio has to stay.
    expect(await hasVoiceEnded(redis, record)).toBe(false);
  });

  it('that a device has stays delivered', async () => {
    await raiseMessageStatus(redis, { id: KEY.id, status: 'DELIVERY_ACK' }, 60);
    expect(await giveUp()).toMatchObject({ status: 'DELIVERY_ACK', origin: undefined });
  });
});
