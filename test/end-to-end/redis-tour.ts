/** API, worker and gateway on a Redis of whatever kind, and everything that they need Redis for, once: what a client sees must not depend on the kind. */

import { Client, receiveWebhooks } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { type Environment, type RunningProcess, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos } from 'soundpost-testing/video-server';
import { expect } from 'vitest';
import { ada, messagesTo } from './inbox.ts';
import type { Videos } from './videos.ts';

const GATEWAY_KEY = 'the-gateways-own-key';

export interface Tour {
  readonly home: ServiceHome;
  readonly processes: readonly RunningProcess[];
  readonly client: Client;
  close(): Promise<void>;
}

/**
 * A job with webhook and voice message, a batch, an upload, a cancellation while it runs, and events as they happen.
 * The caller closes what it answers.
 * @param environment REDIS_URL and what belongs to it
 */
export async function takeTour(videos: Videos, environment: Environment): Promise<Tour> {
  const web = await serveVideos(videos.folder);
  const hooks = await receiveWebhooks();
  const home = await ServiceHome.make({
    SECRET_KEY: 'a secret that three processes share, of 32 bytes or more',
    GATEWAY_API_KEY: GATEWAY_KEY,
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow}`,
    WORKER_CONCURRENCY: '2',
    ...environment,
  });
  const close = async (): Promise<void> => {
    await home.remove();
    await Promise.all([hooks.close(), web.close()]);
  };
  try {
    const api = home.start('api');
    const apiUrl = await api.says(/^API\s+(http\S+)/m);
    const addresses = { PUBLIC_URL: apiUrl, GATEWAY_EVENTS_URL: `${apiUrl}/hooks/gateway` };
    const gateway = home.start('gateway', addresses);
    const gatewayUrl = await gateway.says(/^Gateway\s+(http\S+)/m);
    const worker = home.start('worker', { ...addresses, GATEWAY_URL: gatewayUrl });
    await worker.says(/^Worker/m);
    const client = new Client(apiUrl, home.key);

    const source = { type: 'url', url: web.url('talk.mp4') };
    const voiceMessage = { instance: 'main', number: ada.number };
    // It does not go on before somebody watches it.
    web.hold();
    const jobId = await client.submit({
      source,
      output: { format: 'mp3' },
      options: { webhook: hooks.url, voiceMessage },
    });
    // BullMQ's events and our channel of changes.
    const steps = await eventsOf(apiUrl, home.key, jobId, () => web.letGo());
    expect(steps.at(-1)).toBe('completed');
    expect(steps.length).toBeGreaterThan(1);
    const job = await client.completed(jobId);
    expect((await client.bytes(job.outputFile.url)).bytes).toHaveLength(job.outputFile.size);
    await hooks.notifications(jobId, 'job.completed');
    const sent = await until('the voice message was seen to arrive', async () => {
      const { body } = await client.call('GET', `/v1/status/${jobId}`);
      return body.data.voiceMessage.messageStatus === 'DELIVERY_ACK' && body.data.voiceMessage;
    });
    const arrived = await messagesTo(gatewayUrl, ada.jid, { apikey: GATEWAY_KEY });
    expect(arrived.filter(({ key }) => key.id === sent.key.id)).toHaveLength(1);

    const batch = await client.call('POST', '/v1/batch', {
      webhook: hooks.url,
      jobs: ['flac', 'opus'].map((format) => ({ source, output: { format } })),
    });
    expect(batch.status).toBe(202);
    for (const { jobId: id } of batch.body.data.jobs) {
      await client.completed(id);
      await hooks.notifications(id, 'job.completed');
    }
    const state = await client.call('GET', `/v1/batch/${batch.body.data.batchId}`);
    expect(state.body.data.counts).toMatchObject({ completed: 2 });

    const upload = await client.upload(videos.talk, { output: { format: 'voice' } });
    await client.completed(upload.body.data.jobId);

    web.hold();
    const begun = web.requests.length;
    const unwanted = await client.submit({
      source,
      output: { format: 'wav' },
      options: { webhook: hooks.url },
    });
    await until('its worker has begun', () => web.requests.length > begun);
    await client.call('DELETE', `/v1/jobs/${unwanted}`);
    expect((await client.ended(unwanted)).error.code).toBe('JOB_CANCELLED');
    await hooks.notifications(unwanted, 'job.failed');
    web.letGo();

    const listed = await client.call('GET', '/v1/jobs');
    expect(listed.body.data.jobs).toHaveLength(5);
    return { home, processes: [api, gateway, worker], client, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The states that the stream of events tells of a job until its end. @param onFirst to be called once it has begun */
async function eventsOf(api: string, key: string, jobId: string, onFirst: () => void): Promise<string[]> {
  const response = await fetch(`${api}/v1/jobs/${jobId}/events`, { headers: { 'X-API-Key': key } });
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    onFirst();
  }
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data).status);
}
