/**
 * A start over what the first edition (f8bc16f) has left: its jobs are finished, what was pending is delivered, once each, and all that it
 * knew is known. The data was made by `make-first-edition.ts` with the processes of that edition, which were killed in the middle of their
 * work, and is loaded as if that were a minute ago (`snapshot.ts`): locks and leases have run out, what lasts for a day goes on.
 *
 * Redis is not looked at here: what it holds is the business of each edition. One service for the whole file, and its parts build on each
 * other: first the API alone, with everything as it was left, then the gateway, then a worker.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../until.ts';
import { anApiOverOldData } from './api-suite.ts';
import { aGatewayOverOldData } from './gateway-suite.ts';
import { ada } from './outside.ts';
import { openSecondEdition, type SecondEdition } from './second-edition.ts';
import { aWorkerOverOldData } from './worker-suite.ts';

let service: SecondEdition;
beforeAll(async () => {
  service = await openSecondEdition();
});
afterAll(() => service.close());

anApiOverOldData(() => service);
aGatewayOverOldData(() => service);
aWorkerOverOldData(() => service);

describe('all in all', () => {
  it('a second start finds nothing more to tell', async () => {
    const { hooks } = service.outside;
    const told = hooks.calls.length;
    const restartedAtMs = Date.now();
    await service.restart();
    // An instance's events come in their order: what is older would come before.
    const request = { number: ada.number, audio: service.outside.videos.url('talk.mp4') };
    const sent = await until('the gateway to serve', async () => {
      const answer = await service.call('POST', '/message/sendMessengerAudio/studio', request);
      return answer.status === 200 && answer.body.key;
    });
    const ofSent = () => hooks.calls.slice(told).filter(({ json }) => json.data?.key?.id === sent.id);
    await until('the new message to be told', () => ofSent().length === 3);
    const timeOf = (id: string): number => Number(/^evt_(\d+)-/.exec(id)?.[1] ?? Number.POSITIVE_INFINITY);
    const older = hooks.calls.slice(told).filter(({ id }) => timeOf(id) < restartedAtMs);
    expect(older).toEqual([]);
    await until('the API to be told of it', () => service.relayed.includes(ofSent().at(-1)?.id ?? ''));
    expect(new Set(service.relayed).size).toBe(service.relayed.length);
  });

  it('nothing was told twice, nothing again that had been told, and everything was signed', () => {
    const { calls } = service.outside.hooks;
    expect(calls.filter(({ signatureFault }) => signatureFault !== undefined)).toEqual([]);
    const ids = calls.map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    const ended = new Set(service.manifest.jobs.finished.map(({ job }) => job.jobId));
    expect(calls.filter(({ json }) => ended.has(json.jobId))).toEqual([]);
  });
});
