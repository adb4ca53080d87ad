/** docker-compose.yml as docs/operations/deploying.md tells operators to use it, with each Compose that this machine has. */
import { createHash } from 'node:crypto';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ada } from '../end-to-end/inbox.ts';
import { useVideos } from '../end-to-end/videos.ts';
import {
  composes,
  docker,
  dockerTries,
  evaluateIn,
  healthIs,
  inspect,
  isEncoding,
  LONG_WORK,
} from './engine.ts';
import { Stack } from './stack.ts';

const videos = useVideos({ long: true });

const readiness = `console.log(await (await fetch('http://127.0.0.1:8082/health/ready')).text())`;

describe.each(await composes())('$name', ({ command }) => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await Stack.make(command, [], { DOWNLOADS_AHEAD: '0' });
    await stack.compose('up', '-d');
    for (const id of await stack.containers()) await healthIs(id, 'healthy');
  });
  afterAll(async () => {
    await stack.remove();
  });

  it('carries a video from its upload to a file, and into a chat', async () => {
    const { status, body } = await stack.client.upload(videos.talk, {
      output: { format: 'mp3', normalize: true },
      options: { voiceMessage: { instance: 'main', number: ada.number } },
    });
    expect(status).toBe(202);
    const { outputFile } = await stack.client.completed(body.data.jobId);
    expect(outputFile).toMatchObject({ filename: 'talk.mp3', codec: 'mp3' });
    // By the address that the job gives, which leads through the published port.
    const { bytes } = await stack.client.bytes(outputFile.url);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(outputFile.sha256);
    await until('the voice message was seen to arrive', async () => {
      const { body: now } = await stack.client.call('GET', `/v1/status/${body.data.jobId}`);
      return now.data.voiceMessage.messageStatus === 'DELIVERY_ACK';
    });
  });

  it('confines ffmpeg, although the engine allows no user namespaces', async () => {
    const worker = JSON.parse(await evaluateIn(await stack.container('worker'), readiness));
    expect(worker).toMatchObject({ status: 'ok', sandbox: 'landlock' });
  });

  it('gives no container more than it needs', async () => {
    for (const service of ['redis', 'api', 'worker', 'gateway']) {
      const id = await stack.container(service);
      const { HostConfig, Config } = await inspect(id);
      expect([service, HostConfig.ReadonlyRootfs, HostConfig.CapDrop, HostConfig.Privileged]).toEqual([
        service,
        true,
        ['ALL'],
        false,
      ]);
      expect(HostConfig.SecurityOpt).toContain('no-new-privileges:true');
      expect(HostConfig.Memory).toBeGreaterThan(0);
      expect(HostConfig.PidsLimit).toBeGreaterThan(0);
      expect(Config.User).not.toMatch(/^(root|0)?$/);
      // What the settings say is so: no write beside the volumes, no way to become root.
      const { code, output } = await dockerTries('exec', id, 'sh', '-c', 'id -u; touch /usr/x /x /app/x');
      expect([service, code === 0, output.split('\n')[0] === '0']).toEqual([service, false, false]);
      expect(output).toMatch(/Read-only file system/);
    }
    expect((await inspect(await stack.container('worker'))).HostConfig.NanoCpus).toBe(1e9);
  });

  it('has a Redis that writes down what it accepts, and evicts nothing', async () => {
    const redis = await stack.container('redis');
    for (const [name, value] of [
      ['appendonly', 'yes'],
      ['appendfsync', 'everysec'],
      ['maxmemory-policy', 'noeviction'],
      ['maxmemory', String(512 * 1024 * 1024)],
    ] as const) {
      expect(await docker('exec', redis, 'redis-cli', 'config', 'get', name)).toBe(`${name}\n${value}`);
    }
  });

  it('spreads jobs over three workers after --scale worker=3', async () => {
    await stack.compose('up', '-d', '--no-build', '--scale', 'worker=3');
    const workers = await stack.containers('worker');
    expect(workers).toHaveLength(3);
    for (const id of workers) await healthIs(id, 'healthy');
    const answers = await Promise.all(
      [1, 2, 3].map(() => stack.client.upload(videos.long, { output: LONG_WORK })),
    );
    const busy = new Set<string>();
    await until(
      'each worker has encoded one',
      async () => {
        for (const id of workers) {
          if (await isEncoding(id)) busy.add(id);
        }
        return busy.size === workers.length;
      },
      120_000,
    );
    for (const { body } of answers) await stack.client.completed(body.data.jobId, 120_000);
  });

  it('ends in order within its grace, knows its jobs after the next start, and leaves nothing behind', async () => {
    const { body } = await stack.client.upload(videos.talk, { output: { format: 'flac' } });
    const { outputFile } = await stack.client.completed(body.data.jobId);
    await stack.compose('stop');
    const ended = (
      await docker('ps', '--all', '--quiet', '--filter', `label=com.docker.compose.project=${stack.project}`)
    ).split('\n');
    expect(ended.length).toBeGreaterThanOrEqual(4);
    for (const id of ended) {
      const { State, Config } = await inspect(id);
      expect([Config.Labels['com.docker.compose.service'], State.ExitCode]).toEqual([expect.any(String), 0]);
    }
    await stack.compose('down');
    await stack.compose('up', '-d', '--no-build');
    await healthIs(await stack.container('api'), 'healthy');
    const { bytes } = await stack.client.bytes(`/v1/download/${body.data.jobId}`);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(outputFile.sha256);
    await stack.remove();
    expect(await stack.remains()).toEqual({ containers: [], volumes: [], networks: [] });
  });
});
