/** The stack with deploy/compose/s3.yml: containers share a bucket, and no disk. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useVideos } from '../end-to-end/videos.ts';
import { composes, docker, evaluateIn, healthIs, inspect } from './engine.ts';
import { Stack } from './stack.ts';

const videos = useVideos();
let stack: Stack;
beforeAll(async () => {
  const [compose] = await composes();
  stack = await Stack.make(compose?.command ?? [], ['deploy/compose/s3.yml', 'test/containers/s3.yml'], {
    STORAGE_URL: 's3://soundpost-test/of/containers',
    S3_ENDPOINT: 'http://s3:9000',
    S3_REGION: 'eu-central-1',
    S3_ACCESS_KEY_ID: 'S3RVER',
    S3_SECRET_ACCESS_KEY: 'S3RVER',
  });
  await stack.compose('up', '-d', '--no-build');
  for (const id of await stack.containers()) await healthIs(id, 'healthy');
});
afterAll(() => stack.remove());

it('does not come up without SECRET_KEY, since each container would make its own', async () => {
  const [compose] = await composes();
  const settings = { STORAGE_URL: 's3://soundpost-test', SECRET_KEY: '' };
  const without = await Stack.make(compose?.command ?? [], ['deploy/compose/s3.yml'], settings);
  await expect(without.compose('config')).rejects.toThrow(/set SECRET_KEY, for instance to what openssl/);
});

it('an upload goes through the bucket to a worker, and its result back', async () => {
  const { body } = await stack.client.upload(videos.talk, { output: { format: 'flac' } });
  expect(body, await stack.compose('logs', '--no-color', 'api', 's3')).toMatchObject({ success: true });
  const { jobId, outputFile } = await stack.client.completed(body.data.jobId);
  const { bytes } = await stack.client.bytes(outputFile.url);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(outputFile.sha256);
  const keys: string[] = JSON.parse(
    await evaluateIn(
      await stack.container('s3'),
      `console.log(await (await fetch('http://127.0.0.1:9001')).text())`,
    ),
  );
  expect(keys.filter((key) => key.startsWith(`of/containers/files/${jobId}/`))).toHaveLength(1);
});

it('each container has a disk of its own, with no result on it', async () => {
  const volumes = new Set<string>();
  for (const service of ['api', 'worker', 'gateway']) {
    const id = await stack.container(service);
    const { Mounts } = await inspect(id);
    for (const { Name, Destination } of Mounts) if (Destination === '/data') volumes.add(Name);
    expect(await docker('exec', id, 'find', '/data', '-type', 'f')).toBe('');
  }
  expect(volumes.size).toBe(3);
});
