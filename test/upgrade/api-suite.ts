/** What an API finds: keys, secrets, jobs, uploads, and answers that it has given before. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { Client, type Json } from '../client.ts';
import type { JobsManifest, KeyedRequest } from './manifest.ts';
import { FIXTURE } from './outside.ts';
import type { SecondEdition } from './second-edition.ts';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const show = async (client: Client, jobId: string): Promise<Json> =>
  (await client.call('GET', `/v1/jobs/${jobId}`)).body.data;
/** Addresses are of the API that answers, and signed by the moment. */
const withoutUrl = (job: Json): Json => ({
  ...job,
  outputFile: job.outputFile && { ...job.outputFile, url: '' },
});
const talk = (): Promise<Buffer> => readFile(join(FIXTURE, 'talk.mp4'));

/** Before anything but the API runs: everything is as it was left. */
export function anApiOverOldData(service: () => SecondEdition): void {
  describe('an API over the data of the first edition', () => {
    let jobs: JobsManifest;
    let alice: Client;
    let bob: Client;
    let rotated: Client;
    let api = '';
    beforeAll(() => {
      ({ alice, bob, rotated, api } = service());
      ({ jobs } = service().manifest);
    });
    const clientOf = (owner: 'alice' | 'bob' | 'rotated'): Client => ({ alice, bob, rotated })[owner];

    it('knows its keys: a rotated one by both secrets for a day, a revoked one by none', async () => {
      const statusOf = async (key: string): Promise<number> =>
        (await new Client(api, key).call('GET', '/v1/jobs')).status;
      const { alice: bootstrap, bob: second, rotatedBefore, rotated: after, revoked } = jobs.keys;
      expect(await Promise.all([bootstrap, second, rotatedBefore, after].map(statusOf))).toEqual([
        200, 200, 200, 200,
      ]);
      expect(await statusOf(revoked)).toBe(401);
    });

    it('knows the secrets of webhooks', async () => {
      const secretOf = async (client: Client): Promise<string> =>
        (await client.call('GET', '/v1/webhooks/secret')).body.data.secret;
      expect(await Promise.all([alice, bob, rotated].map(secretOf))).toEqual([
        jobs.secrets.alice,
        jobs.secrets.bob,
        jobs.secrets.rotated,
      ]);
    });

    it('shows finished jobs with their announcements, and has their files', async () => {
      for (const { owner, job, deliveries } of jobs.finished) {
        const client = clientOf(owner);
        const shown = await show(client, job.jobId);
        expect(withoutUrl(shown)).toMatchObject(withoutUrl(job));
        const logged = await client.call('GET', `/v1/jobs/${job.jobId}/deliveries`);
        expect(logged.body.data.deliveries).toMatchObject(deliveries);
        for (const address of [`/v1/download/${job.jobId}`, shown.outputFile.url]) {
          expect(sha256((await client.bytes(address)).bytes)).toBe(job.outputFile.sha256);
        }
      }
      expect(await show(alice, jobs.failed.jobId)).toMatchObject(jobs.failed);
      expect(await show(alice, jobs.cancelled.jobId)).toMatchObject(jobs.cancelled);
    });

    it('lists the jobs of each key, and those of a batch', async () => {
      for (const owner of ['alice', 'bob', 'rotated'] as const) {
        const { body } = await clientOf(owner).call('GET', '/v1/jobs?limit=100');
        const listed = new Set(body.data.jobs.map(({ jobId }: Json) => jobId));
        const own = jobs.waiting.filter((job) => job.owner === owner).map(({ jobId }) => jobId);
        expect([...own.filter((jobId) => !listed.has(jobId))]).toEqual([]);
      }
      const { body } = await bob.call('GET', `/v1/batch/${jobs.batchId}`);
      expect(body.data).toMatchObject({ batchId: jobs.batchId, totalJobs: 2 });
    });

    it('shows what waits as waiting', async () => {
      const states = await Promise.all(
        jobs.waiting.map(async ({ jobId, owner }) => (await show(clientOf(owner), jobId)).status),
      );
      expect(new Set(states)).toEqual(new Set(['queued']));
    });

    it('answers a repeated submission as it was answered, and refuses another under its key', async () => {
      const { idempotencyKey, request, answer } = jobs.idempotency.extract;
      const headers = { 'Idempotency-Key': idempotencyKey };
      const repeated = await bob.call('POST', '/v1/extract', request, headers);
      expect([repeated.status, repeated.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
      expect(repeated.body).toEqual(answer);
      const other = await bob.call('POST', '/v1/extract', { ...request, output: { format: 'wav' } }, headers);
      expect([other.status, other.body.error.code]).toEqual([422, 'IDEMPOTENCY_MISMATCH']);
    });

    it('answers a repeated upload with the first one', async () => {
      const { idempotencyKey, answer }: KeyedRequest = jobs.idempotency.upload;
      const response = await fetch(`${api}/v1/uploads`, {
        method: 'POST',
        headers: {
          'X-API-Key': jobs.keys.bob,
          'Idempotency-Key': idempotencyKey,
          'Content-Type': 'video/mp4',
          'Content-Disposition': 'attachment; filename="talk.mp4"',
        },
        body: await talk(),
      });
      expect([response.status, response.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
      expect(await response.json()).toEqual(answer);
    });

    it('makes no second job of a submission whose API was killed before it answered', async () => {
      const { idempotencyKey, request, jobId } = jobs.idempotency.interrupted;
      const count = async (): Promise<number> =>
        (await alice.call('GET', '/v1/jobs?limit=100')).body.data.jobs.length;
      const before = await count();
      const headers = { 'Idempotency-Key': idempotencyKey };
      const { status, body } = await alice.call('POST', '/v1/extract', request, headers);
      expect([status, body.data.jobId]).toEqual([202, jobId]);
      expect(await count()).toBe(before);
    });

    it('has uploads, and one by tus goes on where it stopped', async () => {
      const { complete, incomplete } = jobs.uploads;
      const { body } = await bob.call('GET', `/v1/uploads/${complete.file}`);
      expect(body.data).toMatchObject({ size: complete.size, complete: true });
      const address = `${api}/v1/uploads/${incomplete.file}`;
      const headers = { 'X-API-Key': jobs.keys.bob, 'Tus-Resumable': '1.0.0' };
      const asked = await fetch(address, { method: 'HEAD', headers });
      expect([asked.status, asked.headers.get('upload-offset')]).toEqual([200, String(incomplete.offset)]);
      const sent = await fetch(address, {
        method: 'PATCH',
        headers: {
          ...headers,
          'Upload-Offset': String(incomplete.offset),
          'Content-Type': 'application/offset+octet-stream',
        },
        body: (await talk()).subarray(incomplete.offset),
      });
      expect(sent.status).toBe(204);
      const { data } = (await bob.call('GET', `/v1/uploads/${incomplete.file}`)).body;
      expect(data).toMatchObject({ size: incomplete.size, complete: true });
    });
  });
}
