import { createClient, verifyWebhook, WebhookSignatureError } from 'soundpost-client';
import { until } from 'soundpost-testing/until';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { useClips, useService } from '../api/api-fixture.ts';

const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes or so').toString('base64')}`;
const OTHER = `whsec_${Buffer.from('another secret of about as many').toString('base64')}`;
const NOW_MS = 1_767_225_600_000;
const at = { nowMs: NOW_MS };

/** As the specification's own library signs. */
function signed(
  body: string,
  { secret = SECRET, timeMs = NOW_MS, id = 'msg_1' } = {},
): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timeMs / 1000),
    'webhook-signature': new Webhook(secret).sign(id, new Date(timeMs), body),
  };
}

const text = JSON.stringify({ event: 'webhook.test', timestamp: '2026-01-01T00:00:00.000Z', note: '✓' });

describe('verifyWebhook', () => {
  it('gives the event of a webhook that the secret signed', async () => {
    expect(await verifyWebhook(signed(text), text, SECRET, at)).toEqual(JSON.parse(text));
  });

  it('takes headers as fetch or Node give them, and the body as bytes', async () => {
    const headers = signed(text);
    const bytes = new TextEncoder().encode(text);
    const shouted = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    await expect(verifyWebhook(new Headers(headers), bytes, SECRET, at)).resolves.toBeDefined();
    await expect(verifyWebhook(shouted, Buffer.from(text), SECRET, at)).resolves.toBeDefined();
  });

  it('takes any of several signatures, and any of several secrets', async () => {
    const rotated = { ...signed(text), 'webhook-signature': '' };
    rotated['webhook-signature'] = [OTHER, SECRET]
      .map((secret) => signed(text, { secret })['webhook-signature'])
      .join(' ');
    await expect(verifyWebhook(rotated, text, SECRET, at)).resolves.toBeDefined();
    await expect(verifyWebhook(rotated, text, OTHER, at)).resolves.toBeDefined();
    await expect(verifyWebhook(signed(text), text, [OTHER, SECRET], at)).resolves.toBeDefined();
  });

  it.each<[string, Record<string, string | undefined>, string, string]>([
    ['another secret', signed(text), text, OTHER],
    ['another body', signed(text), `${text} `, SECRET],
    ['another id', { ...signed(text), 'webhook-id': 'msg_2' }, text, SECRET],
    ['another time', { ...signed(text), 'webhook-timestamp': String(NOW_MS / 1000 + 1) }, text, SECRET],
    ['an old time', signed(text, { timeMs: NOW_MS - 301_000 }), text, SECRET],
    ['a time to come', signed(text, { timeMs: NOW_MS + 301_000 }), text, SECRET],
    ['no time', { ...signed(text), 'webhook-timestamp': 'now' }, text, SECRET],
    ['no signature', { ...signed(text), 'webhook-signature': undefined }, text, SECRET],
    ['a signature of another scheme', { ...signed(text), 'webhook-signature': 'v2,x' }, text, SECRET],
    ['a signature that is no base64', { ...signed(text), 'webhook-signature': 'v1,%%%' }, text, SECRET],
    ['a shorter signature', { ...signed(text), 'webhook-signature': 'v1,AAAA' }, text, SECRET],
  ])('refuses %s', async (_, headers, content, secret) => {
    await expect(verifyWebhook(headers, content, secret, at)).rejects.toBeInstanceOf(WebhookSignatureError);
  });

  it('goes as far with time as it is told', async () => {
    const old = signed(text, { timeMs: NOW_MS - 299_000 });
    await expect(verifyWebhook(old, text, SECRET, at)).resolves.toBeDefined();
    await expect(verifyWebhook(old, text, SECRET, { ...at, toleranceSeconds: 60 })).rejects.toThrow();
  });

  it.each(['', 'whsec_', 'not a secret', 'whsec_%%%'])('does not take %j for a secret', async (secret) => {
    await expect(verifyWebhook(signed(text), text, secret, at)).rejects.toBeInstanceOf(TypeError);
  });
});

describe('a webhook of the service', () => {
  const clip = useClips('tone.mp4');
  const service = useService();

  it('is verified with the secret of the key', async () => {
    const client = createClient({ baseUrl: service().url, apiKey: service().key });
    const hook = service().outside.hook('client');
    const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
    const { jobId } = await client.extract({
      source: { type: 'url', url },
      output: { format: 'mp3' },
      options: { webhook: hook.url },
    });
    const [notification] = await hook.got(1);
    const { secret } = (await service().call('GET', '/v1/webhooks/secret')).body.data;
    const event = await verifyWebhook(notification?.headers ?? {}, notification?.text ?? '', secret);
    expect(event).toMatchObject({ event: 'job.completed', jobId, outputFile: { format: 'mp3' } });
    if (event.event === 'job.completed') {
      // What the type says is there.
      expect(event.outputFile?.sha256).toBe((await client.job(jobId)).outputFile?.sha256);
    }
    await until('the answer to it is known', async () => {
      const [delivery] = (await client.deliveries(jobId)).deliveries;
      return delivery?.status === 'delivered';
    });
  });
});
