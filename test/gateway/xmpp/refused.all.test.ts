// @module-tag prosody
/** A job's voice message that XMPP refuses: it has failed with the network's words, after one try (decisions C). */
import { DOMAIN, startTestProsody, type TestProsody } from 'soundpost-testing/prosody';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestService, useClips } from '../../api/api-fixture.ts';

const clip = useClips('tone.mp4');
let prosody: TestProsody;
let service: TestService;
let url = '';

beforeAll(async () => {
  const accounts = { soundpost: 'one', ada: 'two' };
  prosody = await startTestProsody({ accounts, without: ['http_file_share'] });
  service = await TestService.start({ parts: ['worker', 'gateway'], allow: [prosody.outboundAllow] });
  url = await service.outside.file('tone.mp4', clip('tone.mp4'));
  const connection = {
    jid: `soundpost@${DOMAIN}`,
    password: accounts.soundpost,
    service: `xmpp://127.0.0.1:${prosody.port}`,
  };
  await service.gateway('POST', '/instance/create', {
    instanceName: 'jabber',
    transport: 'xmpp',
    connection,
  });
  await until('the account is connected', async () => {
    const { body } = await service.gateway('GET', '/instance/connectionState/jabber');
    return body.instance.state === 'open';
  });
});
afterAll(async () => {
  await service?.close();
  await prosody?.close();
});

it('by a server without uploads', async () => {
  const hook = service.outside.hook('refused');
  const jobId = await service.submit({
    source: { type: 'url', url },
    output: { format: 'voice' },
    options: { webhook: hook.url, voiceMessage: { instance: 'jabber', number: `ada@${DOMAIN}` } },
  });
  const told = await until('the end of the voice message', () =>
    hook.received.find(({ json }) => json.event === 'voice.updated'),
  );
  const { voiceMessage } = await service.job(jobId);
  expect(voiceMessage).toMatchObject({
    ...{ status: 'failed', attempts: 1, key: null },
    error: { code: 'network_refused', message: expect.stringContaining('has no upload service') },
  });
  expect(told.json.voiceMessage).toEqual(voiceMessage);
});
