/** Our signatures held to the specification's own library, in both directions. */

import { isWebhookSigned } from 'soundpost-kit/signing/signatures';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signWebhook } from '../../src/followups/post-webhook.ts';

const secretOf = (fill: number) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`;
const current = secretOf(1);
const previous = secretOf(2);
const stranger = secretOf(3);
const body = JSON.stringify({ event: 'job.completed', jobId: 'job_0123456789abcdef', name: 'Ünïcödé 🎻' });

const now = () => Date.now();
const verify = (secret: string, headers: object, text = body) =>
  new Webhook(secret).verify(text, { ...headers });

describe('what we sign', () => {
  it('the specification’s library accepts', () => {
    expect(verify(current, signWebhook('msg_1', body, [current], now()))).toEqual(JSON.parse(body));
  });

  it('is accepted under either secret during a rotation, and under no other', () => {
    const headers = signWebhook('msg_1', body, [current, previous], now());
    expect(verify(current, headers)).toEqual(JSON.parse(body));
    expect(verify(previous, headers)).toEqual(JSON.parse(body));
    expect(() => verify(stranger, headers)).toThrow(WebhookVerificationError);
  });

  it.each([
    ['another body', {}, `${body} `],
    ['another id', { 'webhook-id': 'msg_2' }, body],
    ['another time', { 'webhook-timestamp': String(Math.floor(now() / 1000) - 1) }, body],
  ])('is refused with %s', (_what, change, text) => {
    const headers = { ...signWebhook('msg_1', body, [current], now()), ...change };
    expect(() => verify(current, headers, text)).toThrow(WebhookVerificationError);
  });
});

describe('what we accept', () => {
  const foreign = (id: string, atMs: number, secret = current) => ({
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(atMs / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(atMs), body),
  });

  it('is what the library signed', () => {
    expect(isWebhookSigned(foreign('msg_1', now()), body, current, now())).toBe(true);
  });

  it('is one right signature among others', () => {
    const headers = foreign('msg_1', now());
    const several = { ...headers, 'webhook-signature': `v1a,AAAA v1,AAAA ${headers['webhook-signature']}` };
    expect(isWebhookSigned(several, body, current, now())).toBe(true);
  });

  it.each([
    ['another body', foreign('msg_1', now()), `${body} `, current],
    ['another secret', foreign('msg_1', now(), stranger), body, current],
    ['another id', { ...foreign('msg_1', now()), 'webhook-id': 'msg_2' }, body, current],
    ['no signature', { ...foreign('msg_1', now()), 'webhook-signature': '' }, body, current],
    ['no time', { ...foreign('msg_1', now()), 'webhook-timestamp': '' }, body, current],
    ['a time that is none', { ...foreign('msg_1', now()), 'webhook-timestamp': 'NaN' }, body, current],
  ])('is nothing with %s', (_what, headers, text, secret) => {
    expect(isWebhookSigned(headers, text, secret, now())).toBe(false);
  });

  it('is no more than five minutes old, nor from the future', () => {
    const minute = 60_000;
    for (const [age, accepted] of [
      [-6, false],
      [-4, true],
      [4, true],
      [6, false],
    ] as const) {
      const at = now() - age * minute;
      expect([age, isWebhookSigned(foreign('msg_1', at), body, current, now())]).toEqual([age, accepted]);
    }
  });
});
