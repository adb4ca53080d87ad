/** Presigned addresses of a real S3 server, Ceph's: what it takes, and what it refuses. */
import { createHash } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { unless } from 'soundpost-testing/needs';
import { Ceph, cephRoot } from 'soundpost-testing/s3/ceph';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, TestService, useClips } from '../api/api-fixture.ts';

const found = cephRoot();

describe('Ceph', unless('missing' in found ? `there is no Ceph here: ${found.missing}` : undefined), () => {
  const clip = useClips('long.wav');
  let ceph: Ceph;
  let client: S3Client;
  beforeAll(async () => {
    ceph = await Ceph.start('root' in found ? found.root : '');
    const { endpoint = '', region, credentials } = ceph.options;
    client = new S3Client({ endpoint, region, forcePathStyle: true, ...(credentials && { credentials }) });
  });
  afterAll(async () => {
    client.destroy();
    await ceph.close();
  });

  const presigned = (key: string, more: object = {}, options: object = {}): Promise<string> =>
    getSignedUrl(client, new PutObjectCommand({ Bucket: ceph.options.bucket, Key: key, ...more }), {
      expiresIn: 600,
      ...options,
    });

  describe.each([
    ['a folder', () => ({})],
    ['the bucket', () => ceph.environment()],
  ])('files of a service that keeps them in %s', (_where, environment) => {
    let service: TestService;
    let source = '';
    beforeAll(async () => {
      const { port } = new URL(ceph.options.endpoint ?? '');
      // The videos come from a server of the test's own, by upload.
      service = await TestService.start({
        environment: { ...environment(), OUTBOUND_ALLOW: `127.0.0.1:${port}` },
      });
      const { readFile } = await import('node:fs/promises');
      const sent = await service.call('POST', '/v1/uploads', {
        body: await readFile(clip('long.wav')),
        headers: { 'content-type': 'audio/wav', 'content-disposition': 'attachment; filename="long.wav"' },
      });
      source = sent.body.data.file;
    });
    afterAll(() => service.close());

    const run = async (destination: object): Promise<Json> => {
      const jobId = await service.submit({
        source: { type: 'upload', file: source },
        output: { format: 'wav' },
        destination,
      });
      return until('it is put, or is not', async () => {
        const job = await service.job(jobId);
        return job.destination.status !== 'pending' && job;
      });
    };

    it('are there whole, with their type', async () => {
      const { destination, outputFile } = await run({ url: await presigned('whole.wav') });
      expect(destination).toMatchObject({ status: 'completed', error: null });
      const object = await client.send(
        new GetObjectCommand({ Bucket: ceph.options.bucket, Key: 'whole.wav' }),
      );
      const bytes = await object.Body?.transformToByteArray();
      expect(
        createHash('sha256')
          .update(bytes ?? '')
          .digest('hex'),
      ).toBe(outputFile.sha256);
      expect(object.ContentType).toBe('audio/wav');
    });

    it('go with a header that is signed', async () => {
      const url = await presigned(
        'typed.wav',
        { ContentType: 'audio/x-mine' },
        { signableHeaders: new Set(['content-type']) },
      );
      const right = await run({ url, headers: { 'Content-Type': 'audio/x-mine' } });
      expect(right.destination.status).toBe('completed');
      expect((await run({ url })).destination.error.message).toMatch(/ answered with status 403$/);
    });

    it('of an address that has expired are refused; the job is completed, and downloadable', async () => {
      const url = await presigned('late.wav', {}, { signingDate: new Date(Date.now() - 3_600_000) });
      const { jobId, status, destination } = await run({ url });
      expect([status, destination.error.message]).toEqual([
        'completed',
        'the destination answered with status 403',
      ]);
      expect((await service.call('HEAD', `/v1/download/${jobId}`)).status).toBe(200);
    });
  });
});
