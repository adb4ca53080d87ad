/** The service in front of WAHA and of wuzapi (GATEWAY_KIND; decisions C), each played from its published sources. */
import { createHash } from 'node:crypto';
import { type MessagingServer, startWaha, startWuzapi } from 'soundpost-testing/messaging-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Hook, type Json, TestService, useClips } from './api-fixture.ts';

const TOKEN = 'the-token-of-the-other-server';
const KEY = 'the-key-of-the-other-server';

const clip = useClips('tone.mp4');

const kinds = [
  {
    kind: 'waha',
    start: startWaha,
    remoteJid: '12025550101@c.us',
    last: 'PLAYED',
    quote: { reply_to: 'false_12025550101@c.us_Q1', convert: false, session: 'theirs' },
    stopped: 'Session status is not as expected. Try again later or restart the session (STARTING)',
    refused: [
      ['delay', { delay: 1000 }],
      ['quoted', { number: '12025550101@g.us', quoted: { key: { id: 'Q1' } } }],
      ['mentioned', { mentioned: ['12025550102'] }],
      ['mentionsEveryOne', { mentionsEveryOne: true }],
    ],
  },
  {
    kind: 'wuzapi',
    start: startWuzapi,
    remoteJid: '12025550101@s.whatsapp.net',
    last: 'READ',
    quote: {
      ContextInfo: { StanzaId: 'Q1', Participant: '12025550101@s.whatsapp.net' },
      ptt: true,
      mimetype: 'audio/ogg; codecs=opus',
      Seconds: expect.any(Number),
    },
    stopped: 'no session',
    refused: [
      ['delay', { delay: 1000 }],
      ['quoted', { number: '12025550101@g.us', quoted: { key: { id: 'Q1' } } }],
      ['mentionsEveryOne', { mentionsEveryOne: true }],
    ],
  },
] as const;

describe.each(kinds)('GATEWAY_KIND=$kind', ({ kind, start, remoteJid, last, quote, stopped, refused }) => {
  let service: TestService;
  let theirs: MessagingServer;
  let hook: Hook;
  let jobId = '';

  beforeAll(async () => {
    theirs = await start({ apiKey: KEY, webhook: () => `${service.url}/hooks/gateway?token=${TOKEN}` });
    service = await TestService.start({
      environment: {
        GATEWAY_URL: theirs.url,
        GATEWAY_KIND: kind,
        GATEWAY_API_KEY: KEY,
        GATEWAY_EVENTS_TOKEN: TOKEN,
      },
    });
    hook = service.outside.hook(kind);
    const url = await service.outside.file('tone.mp4', clip('tone.mp4'));
    const output = { format: 'voice' };
    jobId = await service.submit({ source: { type: 'url', url }, output, options: { webhook: hook.url } });
    await service.reaches(jobId, 'completed');
  });
  afterAll(async () => {
    await service?.close();
    await theirs?.close();
  });

  const send = (number: string, more: Json = {}) =>
    service.call('POST', `/v1/jobs/${jobId}/voice-message`, {
      json: { instance: 'theirs', number, ...more },
    });
  /** The message once it is as wanted. */
  const becomes = (what: string, is: (voice: Json) => boolean): Promise<Json> =>
    until(what, async () => {
      const { voiceMessage } = await service.job(jobId);
      return is(voiceMessage) && voiceMessage;
    });
  const reaches = (status: string): Promise<Json> => becomes(status, (voice) => voice.status === status);

  it('sends the note to the byte, with what it quotes, and follows its status', async () => {
    await send('+1 (202) 555-0101', { quoted: { key: { id: 'Q1' } } });
    const voice = await becomes(last, ({ messageStatus }) => messageStatus === last);
    expect(voice).toMatchObject({
      status: 'sent',
      attempts: 1,
      error: null,
      key: { remoteJid, fromMe: true },
    });
    const { bytes } = await service.call('GET', `/v1/download/${jobId}`);
    expect(theirs.sent.get(voice.key.id)).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(theirs.asked.at(-1)).toMatchObject(quote);
  });

  it.each([
    ['+12025550463', 'server returned error 463'],
    ['+12025550404', 'no LID found'],
  ])('to %s is refused, so it has failed after one try: %s', async (number, words) => {
    await send(number);
    const { error, attempts } = await reaches('failed');
    expect(error).toEqual({ code: 'network_refused', message: expect.stringContaining(words) });
    expect(attempts).toBe(1);
  });

  it.each(['+12025550999', '+12025550500'])(
    'to %s may have been sent, so it is not sent again',
    async (to) => {
      const before = theirs.asked.length;
      await send(to);
      const { error, attempts } = await reaches('unknown');
      expect([error.code, attempts]).toEqual(['ANSWER_LOST', 1]);
      expect(theirs.asked).toHaveLength(before + 1);
    },
  );

  it.each<readonly [string, object]>(refused)('refuses %s at submission', async (field, more) => {
    const { status, body } = await send('+12025550101', more);
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(body.error.details).toContain(`${field}: must not be given`);
  });

  it.runIf(kind === 'waha')('quotes in a group by WAHA’s whole id', async () => {
    const id = 'false_12025550101@g.us_Q1_12025550102@c.us';
    await send('12025550101@g.us', { quoted: { key: { id } } });
    await reaches('sent');
    expect(theirs.asked.at(-1)).toMatchObject({ chatId: '12025550101@g.us', reply_to: id });
  });

  it('is tried again while there is no session, and says why', async () => {
    await send('+12025550503');
    const voice = await becomes('the first try', ({ attempts }) => attempts === 1);
    expect(voice).toMatchObject({ status: 'pending', error: { code: 'not_connected', message: stopped } });
  });

  it.runIf(kind === 'wuzapi')('is not READ because the account itself has read the chat', async () => {
    await send('+12025550102');
    await becomes('delivered', ({ messageStatus }) => messageStatus === 'DELIVERY_ACK');
  });

  it.runIf(kind === 'waha')('a message that is given up later has failed, and is announced', async () => {
    await send('+12025550131');
    const voice = await reaches('failed');
    expect(voice).toMatchObject({ messageStatus: 'ERROR', error: { code: 'network_refused' } });
    expect(voice.key.id).toMatch(/^3EB0/);
    await until('it is announced', () =>
      hook.received.some(
        ({ json }) => json.event === 'voice.updated' && json.voiceMessage.messageStatus === 'ERROR',
      ),
    );
  });
});
