/** Ceph's S3 server, a real one: the contract of a storage, and uploads by tus through the API. Each part list is asked for once. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { S3Bucket } from 'soundpost-kit/storage/s3-bucket';
import { createS3Storage } from 'soundpost-kit/storage/s3-storage';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { unless } from 'soundpost-testing/needs';
import { Ceph, cephRoot } from 'soundpost-testing/s3/ceph';
import { describeStorage } from 'soundpost-testing/storage-suite';
import { Upload } from 'tus-js-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestService, useClips } from '../api/api-fixture.ts';

const MIB = 1024 ** 2;
const PART_BYTES = 5 * MIB;

const found = cephRoot();

describe('Ceph', unless('missing' in found ? `there is no Ceph here: ${found.missing}` : undefined), () => {
  let ceph: Ceph;
  beforeAll(async () => {
    ceph = await Ceph.start('root' in found ? found.root : '');
  });
  afterAll(() => ceph.close());

  if (currentRun === 'all') {
    let tests = 0;
    describeStorage('a bucket of Ceph as storage', async () => {
      tests += 1;
      const prefix = `test${tests}/`;
      const bucket = new S3Bucket({ ...ceph.options, prefix });
      return {
        storage: createS3Storage(bucket, { largestWriteBytes: 5 * 1024 ** 3 }),
        async keys() {
          const at = { Bucket: ceph.options.bucket, Prefix: prefix };
          const { Contents = [] } = await bucket.client.send(new ListObjectsV2Command(at));
          const { Uploads = [] } = await bucket.client.send(new ListMultipartUploadsCommand(at));
          return [...Contents, ...Uploads].map(({ Key = '' }) => Key.slice(prefix.length));
        },
        close: async () => bucket.close(),
      };
    });
  }

  describe('behind the API', () => {
    const clip = useClips('tone.mp4');
    let counting: CountingProxy;
    let service: TestService;
    beforeAll(async () => {
      counting = await CountingProxy.start(ceph.options.endpoint ?? '');
      const environment = { ...ceph.environment(), S3_ENDPOINT: counting.url };
      service = await TestService.start({ environment });
    });
    afterAll(async () => {
      await service.close();
      counting.close();
    });

    it.each(byRun({ all: [1, 200], long: [2048] }).map((mib) => [mib]))(
      'an upload of %i MiB by tus is complete, after few listings of its parts',
      async (mib) => {
        const video = await readFile(clip('tone.mp4'));
        const bytes = Buffer.alloc(mib * MIB, randomBytes(1021));
        video.copy(bytes);
        counting.listings = 0;
        const file = await new Promise<string>((resolve, reject) => {
          const upload = new Upload(bytes as unknown as Blob, {
            endpoint: `${service.url}/v1/uploads`,
            headers: { 'X-API-Key': service.key },
            metadata: { filename: 'talk.mp4' },
            // As clients have it: a connection that is kept may be closed just then.
            retryDelays: [0, 100, 1000],
            chunkSize: 64 * MIB,
            onError: reject,
            onSuccess: () => resolve(upload.url?.split('/').at(-1) ?? ''),
          });
          upload.start();
        });
        expect(counting.listings).toBeLessThanOrEqual(2 + bytes.length / PART_BYTES / 1000);
        const extraction = { source: { type: 'upload', file }, output: { format: 'mp3' } };
        const job = await service.run(extraction, {}, byRun({ all: 100_000, long: 300_000 }));
        expect([job.status, job.inputFile?.size]).toEqual(['completed', bytes.length]);
        const { status, bytes: result } = await service.call('GET', `/v1/download/${job.jobId}`);
        expect([status, result.length]).toEqual([200, job.outputFile.size]);
        await service.call('DELETE', `/v1/uploads/${file}`);
      },
      byRun({ all: 120_000, long: 900_000 }),
    );
  });
});

/** Passes requests on as they are, with the Host that was signed, and counts those that list parts. */
class CountingProxy {
  listings = 0;
  readonly #server: Server;

  private constructor(to: string) {
    const { hostname, port } = new URL(to);
    this.#server = createServer((incoming, response) => {
      const { method, url = '', headers } = incoming;
      if (method === 'GET' && url.includes('uploadId=')) this.listings += 1;
      const passed = request({ hostname, port, method, path: url, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      passed.on('error', () => response.destroy());
      response.on('close', () => passed.destroy());
      incoming.pipe(passed);
    });
  }

  static async start(to: string): Promise<CountingProxy> {
    const proxy = new CountingProxy(to);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
