/** A copy of docker-compose.yml in an empty folder, with no settings but ports: the commands of the README, and what becomes of the secret. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, type Json } from 'soundpost-testing/client';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeBlocks } from '../docs/markdown.ts';
import { useVideos } from '../end-to-end/videos.ts';
import { composes, docker, dockerTries, healthIs, IMAGE, ROOT, uniqueName } from './engine.ts';

const run = promisify(execFile);
const videos = useVideos();

/** What a shell runs at once, with the lines that go on in the next one put together. */
function commandsOfReadme(): string[] {
  const block = codeBlocks('README.md').find(({ text }) => text.startsWith('docker compose up'));
  return (block?.text ?? '').trim().replaceAll('\\\n', '').split('\n');
}

describe.each(await composes())('$name', ({ command }) => {
  const project = uniqueName();
  const compose = command.join(' ');
  let folder = '';
  let api = '';
  let environment: NodeJS.ProcessEnv = {};

  /** In the folder, by the shell that an operator has. */
  const shell = (line: string) => run('bash', ['-c', line], { cwd: folder, env: environment });
  const services = ['api', 'worker', 'gateway'];
  const containerOf = async (service: string): Promise<string> => {
    const labels = { project, service };
    const filters = Object.entries(labels).flatMap(([name, value]) => [
      '--filter',
      `label=com.docker.compose.${name}=${value}`,
    ]);
    return docker('ps', '--all', '--quiet', '--no-trunc', ...filters);
  };
  const allHealthy = async (): Promise<void> => {
    for (const service of services) await healthIs(await containerOf(service), 'healthy');
  };
  const onVolume = (...words: string[]): Promise<string> => {
    const [program = '', ...args] = words;
    return docker(
      'run',
      '--rm',
      '--volume',
      `${project}_data:/data`,
      '--entrypoint',
      program,
      IMAGE,
      ...args,
    );
  };
  const statusOf = async (key: string): Promise<number> =>
    (await new Client(api, key).call('GET', '/v1/jobs')).status;
  const newKey = async (): Promise<string> =>
    (await shell(`${compose} exec -T api node src/main.ts keys create --name other`)).stdout.trim();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'soundpost-one-file-'));
    await copyFile(join(ROOT, 'docker-compose.yml'), join(folder, 'docker-compose.yml'));
    await copyFile(videos.talk, join(folder, 'talk.mp4'));
    const ports = await Promise.all([freePort(), freePort()]);
    const [ofApi, ofGateway] = ports.map((port) => `127.0.0.1:${port}`);
    const { SECRET_KEY: _, BOOTSTRAP_API_KEY: __, ...env } = process.env;
    environment = {
      ...env,
      COMPOSE_PROJECT_NAME: project,
      SOUNDPOST_IMAGE: IMAGE,
      API_ADDRESS: ofApi,
      GATEWAY_ADDRESS: ofGateway,
    };
    api = `http://${ofApi}`;
  });
  afterAll(async () => {
    await shell(`${compose} down --volumes --timeout 5`);
    await rm(folder, { recursive: true });
  });

  let key = '';
  it('comes to a first job by the two commands of the README', async () => {
    const commands = commandsOfReadme().map((line) =>
      line.replaceAll('docker compose', compose).replaceAll('http://127.0.0.1:8080', api),
    );
    expect(commands).toHaveLength(2);
    await shell(commands[0] ?? '');
    const { stdout } = await shell(`(${commands[1]}) 2>shown`);
    const shown = await readFile(join(folder, 'shown'), 'utf8');
    [key = ''] = /sp_\w+/.exec(shown) ?? [];
    const answer: Json = JSON.parse(stdout);
    expect(answer, stdout + shown).toMatchObject({ success: true });
    const client = new Client(api, key);
    const { outputFile } = await client.completed(answer.data.jobId);
    expect(outputFile).toMatchObject({ filename: 'talk.mp3' });
    expect((await client.bytes(`/v1/download/${answer.data.jobId}`)).status).toBe(200);
    await allHealthy();
  });

  it('keeps its keys over a restart, and over containers that are made anew', async () => {
    expect(await onVolume('stat', '-c', '%a %U', '/data/secret-key')).toBe('600 node');
    await shell(`${compose} restart`);
    await allHealthy();
    expect(await statusOf(key)).toBe(200);
    await shell(`${compose} down`);
    await shell(`${compose} up -d`);
    await allHealthy();
    expect(await statusOf(key)).toBe(200);
  });

  it('refuses to start without its secret, makes none in its place, and goes on when told so', async () => {
    const secret = await onVolume('cat', '/data/secret-key');
    await onVolume('rm', '/data/secret-key');
    await shell(`${compose} restart`);
    for (const service of services) {
      const id = await containerOf(service);
      await until(`${service} says what is lost`, async () =>
        /\/data\/secret-key is not there, but Redis has data.*restore the file.*accept-secret/.test(
          (await dockerTries('logs', id)).output,
        ),
      );
    }
    expect(await onVolume('ls', '/data')).not.toContain('secret-key');
    // Another one of the operator's is refused too.
    const other = `SECRET_KEY=${'x'.repeat(32)} ${compose} run --rm -T api`;
    await expect(shell(other)).rejects.toThrow(/SECRET_KEY \(fingerprint \w+\) is not the SECRET_KEY/);

    const { stdout } = await shell(`${compose} run --rm -T api accept-secret`);
    expect(stdout).toMatch(/^Redis now accepts the SECRET_KEY with fingerprint/m);
    await shell(`${compose} restart`);
    await allHealthy();
    expect(await statusOf(key)).toBe(401);
    expect(await statusOf(await newKey())).toBe(200);
    expect(await onVolume('cat', '/data/secret-key')).not.toBe(secret);
  });
});
