/** What the image is, and how a container of it lives and ends. */
import type { Client, Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import type { StartedTestContainer } from 'testcontainers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMIT_BYTES, MIB, measureUpload, ways } from '../api/upload-memory.ts';
import { useVideos } from '../end-to-end/videos.ts';
import {
  docker,
  dockerTries,
  evaluateIn,
  healthIs,
  IMAGE,
  inspect,
  isEncoding,
  LONG_WORK,
} from './engine.ts';
import { ServiceContainers } from './service.ts';

/** As the engine counts them: the files of all layers, unpacked. */
const IMAGE_LIMIT_BYTES = 350e6;

const HEALTH = ['node', '/app/src/cli/health.ts'];

/** Runs a command in a container of its own that may write nowhere, and answers what it wrote. */
const inReadOnly = (
  entrypoint: string,
  ...args: readonly string[]
): Promise<{ code: number; output: string }> =>
  dockerTries(
    ...['run', '--rm', '--read-only', '--network', 'none', '--entrypoint', entrypoint, IMAGE, ...args],
  );

describe('the image', () => {
  it('runs as a user who is not root, and holds nothing that this one could change', async () => {
    // Not read-only, where nobody can change anything.
    const found = await docker(
      ...['run', '--rm', '--network', 'none', '--entrypoint', 'sh', IMAGE, '-c'],
      'id -u; find / -xdev -writable ! -type l 2>/dev/null || true',
    );
    const [user, ...writable] = found.split('\n');
    expect(user).toBe('1000');
    // Where the engine, or a volume, lets everybody write.
    const elsewhere = /^\/(tmp|var\/tmp|run\/lock|data|dev|proc|sys)(\/|$)/;
    expect(writable.filter((path) => !elsewhere.test(path))).toEqual([]);
  });

  it('is small', async () => {
    expect((await inspect(IMAGE)).Size).toBeLessThanOrEqual(IMAGE_LIMIT_BYTES);
  });

  it('has no ffmpeg, bubblewrap, package manager of Node, compiler or Python of a system', async () => {
    const { output } = await inReadOnly(
      'sh',
      '-c',
      'for tool in ffmpeg ffprobe bwrap prlimit setpriv tini node npm npx yarn corepack cc gcc g++ make python3 git curl wget; do command -v $tool; done; ls /usr/lib/*/libav* 2>/dev/null',
    );
    const tools = output
      .trim()
      .split('\n')
      .map((path) => path.split('/').at(-1));
    expect(tools).toEqual(['prlimit', 'setpriv', 'tini', 'node']);
  });

  it('has the ffmpeg that script/ffmpeg builds, complete, and confines it', async () => {
    const { output } = await inReadOnly('node', '/app/src/main.ts', 'doctor', '--json');
    const { checks }: Json = JSON.parse(output);
    const foundOf = (name: string): Json => checks.find(({ check }: Json) => check === name);
    expect(foundOf('ffmpeg')).toMatchObject({
      verdict: 'ok',
      found: expect.stringMatching(/^ffmpeg \S+ \(\/app\/\.ffmpeg\/bin\/ffmpeg\), with every encoder/),
    });
    expect(foundOf('Sandbox')).toMatchObject({
      verdict: 'ok',
      found: 'ffmpeg runs in a sandbox (landlock), with limits',
    });
  });

  it('has the code and production packages alone', async () => {
    const { output } = await inReadOnly(
      'sh',
      '-c',
      'ls -A /app; ls /app/node_modules | grep -c .; ls /app/node_modules',
    );
    const [names = '', ...rest] = output.split(/\n(?=\d+\n)/);
    expect(names.split('\n')).toEqual([
      '.compiled',
      '.ffmpeg',
      'node_modules',
      'package.json',
      'packages',
      'src',
      'web',
    ]);
    expect(rest.join()).toMatch(/^express$/m);
    expect(rest.join()).not.toMatch(/^(vitest|typescript|testcontainers)$/m);
  });

  it('brings what Node compiles of all its code, and Node takes it', async () => {
    const load = `for (const name of ['api', 'gateway', 'worker']) await import('/app/src/' + name + '/start.ts'); process.exit()`;
    const { output } = await dockerTries(
      ...[
        'run',
        '--rm',
        '--read-only',
        '--network',
        'none',
        '--env',
        'NODE_DEBUG_NATIVE=COMPILE_CACHE',
        '--entrypoint',
        'node',
      ],
      ...[IMAGE, '--max-semi-space-size=4', '--input-type=module', '--eval', load],
    );
    const ours = output.split('\n').filter((line) => line.includes('/app/src/'));
    const accepted = ours.filter((line) => / was accepted/.test(line));
    expect(accepted.length).toBeGreaterThan(100);
    expect(ours.filter((line) => /reject|mismatch|not initialized/.test(line))).toEqual([]);
  });

  it('says in one line that no server listens, where none does', async () => {
    expect(await inReadOnly('node', ...HEALTH.slice(1))).toEqual({
      code: 1,
      output: 'no server is listening\n',
    });
  });
});

describe('a container', () => {
  const videos = useVideos({ long: true });
  let service: ServiceContainers;
  let client: Client;
  beforeAll(async () => {
    service = await ServiceContainers.make();
    client = await service.api();
  });
  afterAll(() => service.remove());

  const mainProcess = async (container: StartedTestContainer): Promise<string> =>
    evaluateIn(
      container.getId(),
      `import { readdirSync, readFileSync } from 'node:fs';
       const isOurs = (pid) => /^node\\0.*main\\.ts/.test(readFileSync('/proc/' + pid + '/cmdline', 'utf8'));
       console.log(readdirSync('/proc').find((pid) => /^\\d+$/.test(pid) && isOurs(pid)));`,
    );

  it('of the api stays small whatever it takes in', async () => {
    const container = await service.run('api', {
      name: 'api-measured',
      change: (built) => built.withExposedPorts(8080),
    });
    const path = `/proc/${await mainProcess(container)}/status`;
    const api = {
      address: `http://${container.getHost()}:${container.getMappedPort(8080)}`,
      key: service.key,
      status: () => docker('exec', container.getId(), 'cat', path),
    };
    const { grownBytes } = await measureUpload(api, videos.long, ways.form, 256 * MIB);
    expect(grownBytes).toBeLessThan(LIMIT_BYTES);
  });

  it.each(['worker', 'gateway'])(
    'of the %s is healthy, and is not once its process answers no more',
    async (command) => {
      const container = await service.run(command, {
        name: `${command}-to-stop`,
        environment: { WATCHDOG_SECONDS: '0' },
      });
      const id = container.getId();
      expect((await inspect(id)).State.Health.Status).toBe('healthy');
      await docker('exec', id, 'sh', '-c', `kill -STOP ${await mainProcess(container)}`);
      const { code, output } = await dockerTries('exec', id, ...HEALTH);
      expect([code, output]).toEqual([1, `${command}: no answer\n`]);
      await healthIs(id, 'unhealthy');
      await container.stop({ timeout: 0 });
    },
  );

  it('ends when its event loop stands still, so that the engine starts another one', async () => {
    // Not a file: its mount would take the place of the one of the data.
    const standStill = "--import=data:text/javascript,process.on('SIGUSR2',()=>{for(;;);})";
    // More than a process of a busy machine stands still by itself.
    const environment = { WATCHDOG_SECONDS: '5', NODE_OPTIONS: standStill };
    const container = await service.run('worker', { name: 'worker-to-stall', environment });
    await docker('exec', container.getId(), 'sh', '-c', `kill -USR2 ${await mainProcess(container)}`);
    await until('it ends', async () => !(await inspect(container.getId())).State.Running);
    expect((await inspect(container.getId())).State.ExitCode).toBe(137);
  });

  it('with a job under way ends within its grace at SIGTERM, and hands the job to another', async () => {
    const first = await service.run('worker', { name: 'worker-1', environment: { SHUTDOWN_SECONDS: '1' } });
    const { body } = await client.upload(videos.long, { output: LONG_WORK });
    await until('it encodes', () => isEncoding(first.getId()));
    await docker('stop', '--time', '20', first.getId());
    // Not 137, which the engine's SIGKILL would leave.
    expect((await inspect(first.getId())).State.ExitCode).toBe(0);
    expect((await client.call('GET', `/v1/status/${body.data.jobId}`)).body.data.status).not.toBe(
      'completed',
    );
    await service.run('worker', { name: 'worker-2' });
    await client.completed(body.data.jobId, 120_000);
  });
});
