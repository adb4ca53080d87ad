/** What Meta refuses, at once or after it took the message: a sentence in the job and in its event (decisions B and C). */
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { TestService, useClips } from '../../api/api-fixture.ts';
import { account, ada } from './cloud-fixture.ts';
import { blockedByPerson, closedWindow, FakeGraph, nobodyThere } from './fake-graph.ts';

const clip = useClips('tone.mp4');
let graph: FakeGraph;
let service: TestService;
let url = '';

beforeAll(async () => {
  graph = await new FakeGraph().start();
  service = await TestService.start({
    parts: ['worker', 'gateway'],
    allow: [graph.outboundAllow],
    environment: { GRAPH_URL: graph.url },
  });
  graph.webhookUrl = `${service.gatewayUrl}/webhooks/whatsapp-cloud/shop`;
  url = await service.outside.file('tone.mp4', clip('tone.mp4'));
});
afterAll(async () => {
  await service?.close();
  await graph?.close();
});

const state = async (): Promise<string> =>
  (await service.gateway('GET', '/instance/connectionState/shop')).body.instance.state;

beforeEach(async () => {
  graph.expired = false;
  await service.gateway('DELETE', '/instance/delete/shop');
  await service.gateway('POST', '/instance/create', account('shop'));
  await until('the account is connected', async () => (await state()) === 'open');
});

async function sent(number: string) {
  const hook = service.outside.hook(`refused-${number}`);
  const jobId = await service.submit({
    source: { type: 'url', url },
    output: { format: 'voice' },
    options: { webhook: hook.url, voiceMessage: { instance: 'shop', number } },
  });
  return { jobId, hook };
}

it.each([
  ['the closed window', closedWindow, /more than 24 hours ago.*template.*\(131047\)/],
  ['nobody there', nobodyThere, /not on WhatsApp.*\(131026\)/],
  ['a person who blocked the account', blockedByPerson, /has blocked the account.*\(131026\)/],
])('%s is reported after the send was taken', async (_, number, sentence) => {
  const { jobId, hook } = await sent(number);
  const told = await until('the failure in the event', () =>
    hook.received.find(({ json }) => json.voiceMessage?.status === 'failed'),
  );
  const { voiceMessage } = await service.job(jobId);
  expect(voiceMessage).toMatchObject({
    ...{ status: 'failed', attempts: 1, messageStatus: 'ERROR' },
    error: { code: 'network_refused', message: expect.stringMatching(sentence) },
  });
  expect(told.json).toMatchObject({ event: 'voice.updated', voiceMessage });
});

it('an expired token fails it after one try, and closes the connection until somebody acts', async () => {
  graph.expired = true;
  const { jobId, hook } = await sent(ada.number);
  const told = await until('the failure in the event', () =>
    hook.received.find(({ json }) => json.voiceMessage?.status === 'failed'),
  );
  const { voiceMessage } = await service.job(jobId);
  expect(voiceMessage).toMatchObject({
    ...{ status: 'failed', attempts: 1, key: null },
    error: {
      code: 'network_refused',
      message: expect.stringMatching(/token has expired.*delete the instance and create it.*\(190\)/),
    },
  });
  expect(told.json).toMatchObject({ event: 'voice.updated', voiceMessage });
  expect(await state()).toBe('close');
});

it('a rate limit waits, and the message is sent once', async () => {
  graph.accidents.push(130429);
  const [taken, asked] = [graph.taken.length, graph.requests.length];
  const { jobId } = await sent(ada.number);
  const ended = await until('the message is sent', async () => {
    const { voiceMessage } = await service.job(jobId);
    return voiceMessage?.status === 'sent' && voiceMessage;
  });
  expect(ended).toMatchObject({ attempts: 1, error: null });
  expect(graph.taken.length - taken).toBe(1);
  const sends = graph.requests.slice(asked).filter(({ body }) => body.type === 'audio');
  expect(sends).toHaveLength(2);
});
