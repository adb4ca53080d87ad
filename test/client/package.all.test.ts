import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestService, useClips } from '../api/api-fixture.ts';
import { startChromium } from '../chromium.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const clip = useClips('tone.mp4');

/** A project that has installed the package: what package.json exports, built as its users get it, and nothing more. */
let project = '';
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'soundpost-user-'));
  const installed = join(project, 'node_modules/soundpost');
  await mkdir(installed, { recursive: true });
  await cp(join(ROOT, 'package.json'), join(installed, 'package.json'));
  expect(await run([join(ROOT, 'script/build-client'), join(installed, 'dist')])).toEqual([0, '']);
});
afterAll(() => rm(project, { recursive: true, force: true }));

async function run(command: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { cwd: project, env: { ...process.env, ...environment } });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return [code, stdout + stderr];
}

/** What a program does with the package; ends with the answer. */
const program = `
  const { createClient } = soundpost;
  const client = createClient({ baseUrl, apiKey });
  const { jobId } = await client.extract({ source: { type: 'url', url }, output: { format: 'mp3' } });
  let steps = 0;
  const job = await client.waitFor(jobId, { onProgress: () => { steps += 1; } });
  const file = await (await client.download(jobId)).blob();
  const missing = await client.job('job_0000000000000000').catch(({ name, code }) => name + ' ' + code);
`;
const outcome =
  '({ filename: job.outputFile.filename, hasAll: file.size === job.outputFile.size && steps > 0, missing })';
const expected = { filename: 'tone.mp3', hasAll: true, missing: 'SoundpostError JOB_NOT_FOUND' };

describe('soundpost/client, built', () => {
  let service: TestService;
  const page = createServer(async (request, response) => {
    const file = join(project, 'node_modules/soundpost/dist', request.url ?? '');
    const isModule = request.url?.endsWith('.js') ?? false;
    response.writeHead(200, { 'content-type': isModule ? 'text/javascript' : 'text/html' });
    response.end(isModule ? await readFile(file) : '<!doctype html><title>A page</title>');
  });
  let origin = '';
  let url = '';
  beforeAll(async () => {
    page.listen(0, '127.0.0.1');
    await once(page, 'listening');
    origin = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    service = await TestService.start({ environment: { CORS_ORIGINS: origin } });
    url = await service.outside.file('tone.mp4', clip('tone.mp4'));
  });
  afterAll(async () => {
    page.closeAllConnections();
    page.close();
    await service.close();
  });

  it('works in Node without any other package', async () => {
    await writeFile(
      join(project, 'program.mjs'),
      `import * as soundpost from 'soundpost/client';
      const { baseUrl, apiKey, url } = process.env;
      ${program}
      console.log(JSON.stringify(${outcome}));`,
    );
    const environment = { baseUrl: service.url, apiKey: service.key, url };
    const [code, output] = await run([process.execPath, 'program.mjs'], environment);
    expect(JSON.parse(String(output))).toEqual(expected);
    expect(code).toBe(0);
  });

  it('works in a browser, on a page of another origin', async () => {
    const browser = await startChromium({ width: 800, height: 600 });
    try {
      const tab = await browser.context.newPage();
      await tab.goto(origin);
      const values = JSON.stringify({ baseUrl: service.url, apiKey: service.key, url });
      const answer = await tab.evaluate(`(async () => {
        const soundpost = await import('/client/index.js');
        const { baseUrl, apiKey, url } = ${values};
        ${program}
        return ${outcome};
      })()`);
      expect(answer).toEqual(expected);
    } finally {
      await browser.close();
    }
  });

  it('has types that tell a mistake from a request', async () => {
    await symlink(join(ROOT, 'node_modules/zod'), join(project, 'node_modules/zod'));
    await symlink(join(ROOT, 'node_modules/@types'), join(project, 'node_modules/@types'));
    await symlink(join(ROOT, 'node_modules/undici-types'), join(project, 'node_modules/undici-types'));
    await writeFile(
      join(project, 'user.ts'),
      `import { createClient, type WebhookEvent } from 'soundpost/client';
      const client = createClient({ baseUrl: 'https://soundpost.example', apiKey: 'sp_x' });
      const source = { type: 'url', url: 'https://example.com/a.mp4' } as const;
      export const size: Promise<number> = client.waitFor('job_1').then(({ outputFile }) => outputFile.size);
      export const of = (event: WebhookEvent) => (event.event === 'job.failed' ? event.error.code : undefined);
      void client.extract({ source, output: { format: 'mp3', loudness: -14 } });
      // @ts-expect-error no such format
      void client.extract({ source, output: { format: 'mp9' } });
      // @ts-expect-error a number
      export const text: Promise<string> = client.usage().then(({ reads }) => reads.limit);`,
    );
    await writeFile(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          noEmit: true,
          module: 'nodenext',
          target: 'es2022',
          types: ['node'],
        },
      }),
    );
    expect(await run([join(ROOT, 'node_modules/.bin/tsc'), '-p', '.'])).toEqual([0, '']);
  });
});
