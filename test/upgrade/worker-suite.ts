/** What becomes of unfinished jobs, and of announcements that are pending. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { beforeAll, describe, expect, it } from 'vitest';
import { Client, type Json } from '../client.ts';
import { messagesTo } from '../end-to-end/inbox.ts';
import type { HookCall } from '../faults/hook-receiver.ts';
import { until } from '../until.ts';
import type { JobsManifest } from './manifest.ts';
import { ada } from './outside.ts';
import type { SecondEdition } from './second-edition.ts';

/** On a busy machine a dozen jobs take their time. */
const PATIENCE_MS = 100_000;
const patience = { timeout: PATIENCE_MS * 1.5 };

const show = async (client: Client, jobId: string): Promise<Json> =>
  (await client.call('GET', `/v1/jobs/${jobId}`)).body.data;

/** With gateway and worker: what was unfinished is finished, what was pending is told. */
export function aWorkerOverOldData(service: () => SecondEdition): void {
  describe('a worker over the data of the first edition', () => {
    let jobs: JobsManifest;
    let outside: SecondEdition['outside'];
    let alice: Client;
    let bob: Client;
    let rotated: Client;
    const clientOf = (owner: 'alice' | 'bob' | 'rotated'): Client => ({ alice, bob, rotated })[owner];

    /** Of a key that had no job yet. */
    let newcomer = '';
    let newcomersJob = '';
    /** A job from the upload that was completed above. */
    let jobOfUpload = '';

    beforeAll(async () => {
      ({ alice, bob, rotated, outside } = service());
      ({ jobs } = service().manifest);
      newcomer = await service()
        .run('keys', 'create', '--name', 'newcomer')
        .says(/(sp_\w+)/);
      const output = { format: 'mp3' };
      newcomersJob = await new Client(service().api, newcomer).submit({
        source: { type: 'url', url: outside.videos.url('talk.mp4') },
        output,
      });
      jobOfUpload = await bob.submit({
        source: { type: 'upload', file: jobs.uploads.incomplete.file },
        output,
      });
      await service().startWorker();
    });

    const hooksOf = (jobId: string, event: string): HookCall[] =>
      outside.hooks.calls.filter(({ json }) => json.jobId === jobId && json.event === event);
    const told = async (jobId: string, event: string): Promise<void> => {
      await until(`${event} of ${jobId}`, () => hooksOf(jobId, event).length > 0, PATIENCE_MS);
    };

    it('finishes what waited, in the order in which it stood', patience, async () => {
      const finished = await Promise.all(
        jobs.waiting.map(({ jobId, owner }) => clientOf(owner).completed(jobId, PATIENCE_MS)),
      );
      const newcomers = await new Client(service().api, newcomer).completed(newcomersJob, PATIENCE_MS);
      const bobs = await bob.completed(jobOfUpload, PATIENCE_MS);
      const begun = [...finished, newcomers, bobs]
        .toSorted((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt))
        .map(({ jobId }) => jobId);
      const known = jobs.waiting.map(({ jobId }) => jobId);
      expect(begun.filter((jobId) => known.includes(jobId))).toEqual(known);
      // Virtual time goes on: a key without jobs begins where it is, and one with jobs behind those.
      const atMost = jobs.waiting.filter(({ place }) => place <= jobs.virtualTime).map(({ jobId }) => jobId);
      expect(atMost.length).toBeGreaterThan(0);
      expect(begun.slice(0, begun.indexOf(newcomersJob))).toEqual(atMost);
      const lastOfBob = jobs.waiting.findLast(({ owner }) => owner === 'bob')?.jobId ?? '';
      expect(begun.indexOf(jobOfUpload)).toBeGreaterThan(begun.indexOf(lastOfBob));
    });

    it('takes up the job whose worker died, and ends the one that was cancelled there', async () => {
      await alice.completed(jobs.unfinished.active, PATIENCE_MS);
      const { error } = await bob.ended(jobs.unfinished.cancelledActive, PATIENCE_MS);
      expect(error.code).toBe('JOB_CANCELLED');
    });

    it('tells each webhook that was pending once, signed with the secrets of its key', {
      timeout: PATIENCE_MS * 1.5,
    }, async () => {
      const { active, cancelledActive, cancelledWaiting, webhookRefused, webhookUnderWay } = jobs.unfinished;
      const completed = [active, webhookRefused, webhookUnderWay];
      for (const { jobId, owner } of jobs.waiting) {
        const { options } = await show(clientOf(owner), jobId);
        if (options.webhook !== undefined) completed.push(jobId);
      }
      // The last one was told before, and its owner wished for a replay.
      const failed = [cancelledActive, cancelledWaiting, jobs.failed.jobId];
      await Promise.all([
        ...completed.map((jobId) => told(jobId, 'job.completed')),
        ...failed.map((jobId) => told(jobId, 'job.failed')),
      ]);
      const [refused] = hooksOf(webhookRefused, 'job.completed');
      for (const secret of [jobs.secrets.rotated, jobs.secrets.rotatedBefore]) {
        new Webhook(secret).verify(refused?.text ?? '', { ...refused?.headers });
      }
      // What was told is noted once its answer has come.
      const deliveries = await until('its delivery to be noted', async () => {
        const { body } = await rotated.call('GET', `/v1/jobs/${webhookRefused}/deliveries`);
        return body.data.deliveries[0]?.attempts.length > 1 && body.data.deliveries;
      });
      expect(deliveries).toMatchObject([
        { status: 'delivered', attempts: [{ httpStatus: 503 }, { httpStatus: 204 }] },
      ]);
    });

    it('sends each voice message that was pending once', patience, async () => {
      const waiting = await Promise.all(jobs.waiting.map(({ jobId, owner }) => show(clientOf(owner), jobId)));
      const withVoice = waiting
        .filter(({ voiceMessage }) => voiceMessage !== undefined)
        .map(({ jobId }) => jobId);
      expect(withVoice.length).toBeGreaterThan(0);
      const { voiceRefused, voiceUnderWay } = jobs.unfinished;
      const ids: string[] = [];
      for (const jobId of [...withVoice, voiceRefused, voiceUnderWay]) {
        const key = await until(
          `the message of ${jobId} to arrive`,
          async () => {
            const { voiceMessage } = await show(alice, jobId);
            return voiceMessage.messageStatus === 'DELIVERY_ACK' && voiceMessage.key;
          },
          PATIENCE_MS,
        );
        ids.push(key.id);
        await told(jobId, 'voice.updated');
      }
      const { gateway, manifest } = service();
      const apikey = manifest.environment.GATEWAY_API_KEY ?? '';
      const messages = await messagesTo(gateway, ada.jid, { apikey });
      const before = jobs.finished.flatMap(({ job }) => job.voiceMessage?.key.id ?? []);
      expect(messages.map(({ key }) => key.id).sort()).toEqual([...before, ...ids].sort());
    });

    it('has removed what its killed worker left on the disk', async () => {
      const left = await readdir(join(service().home.folder, 'data', 'workspaces'), { recursive: true });
      expect(left.filter((name) => name.includes(jobs.unfinished.active))).toEqual([]);
    });
  });
}
