// @module-tag chromium
/** The package soundpost-client, as somebody has it who installs it: packed, installed without a registry in an empty folder, and used in every way that its page names. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { startChromium } from 'soundpost-testing/chromium';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { TestService, useClips } from '../api/api-fixture.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const BIN = join(ROOT, 'node_modules/.bin');
const clip = useClips('tone.mp4');
const environment = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  npm_config_update_notifier: 'false',
};

const Manifest = z.looseObject({ version: z.string() });
const manifestOf = async (folder: string) =>
  Manifest.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));

let folder = '';
/** Of somebody who has installed the package, and nothing else. */
let project = '';
let tarball = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-client-'));
  project = join(folder, 'project');
  await mkdir(project);
  const source = join(folder, 'source');
  expect(await run([join(ROOT, 'script/build-client'), source])).toEqual([0, '']);
  await promisify(execFile)('npm', ['pack', '--pack-destination', folder], {
    cwd: source,
    env: environment,
  });
  tarball = join(folder, `soundpost-client-${(await manifestOf(source)).version}.tgz`);
  await writeFile(join(project, 'package.json'), '{"private":true}');
  const install = ['npm', 'install', '--offline', '--no-audit', '--no-fund', tarball];
  expect((await run(install))[0]).toBe(0);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function run(command: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { cwd: project, env: { ...environment, ...more } });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return [code, stdout + stderr];
}

describe('soundpost-client', () => {
  it('takes less than 1 MB, brings no other package, and has the version of the service', async () => {
    const modules = join(project, 'node_modules');
    const files = (await readdir(modules, { recursive: true, withFileTypes: true })).filter((entry) =>
      entry.isFile(),
    );
    const sizes = await Promise.all(
      files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1024 ** 2);
    expect((await readdir(modules)).filter((name) => !name.startsWith('.'))).toEqual(['soundpost-client']);
    expect(files.map(({ name }) => name).sort()).toEqual([
      '.package-lock.json',
      ...['LICENSE', 'README.md', 'index.cjs', 'index.d.cts', 'index.d.ts', 'index.js', 'package.json'],
    ]);
    const installed = join(modules, 'soundpost-client');
    expect((await manifestOf(installed)).version).toBe((await manifestOf(ROOT)).version);
    expect(await readFile(join(installed, 'LICENSE'), 'utf8')).toBe(
      await readFile(join(ROOT, 'LICENSE'), 'utf8'),
    );
  });

  it('has types of its own alone, with what the service says of each field', async () => {
    const types = await readFile(join(project, 'node_modules/soundpost-client/dist/index.d.ts'), 'utf8');
    expect(types).not.toMatch(/\bimport\b|\bzod\b|\brequire\b|<reference/);
    expect(types).toContain('interface OutputFile {');
    expect(types).toContain('/** Measured, not as requested */\n  bitrate: string;');
  });

  it('is found by every way of resolving modules', async () => {
    const [code, output] = await run([join(BIN, 'attw'), tarball, '--format', 'ascii', '--no-emoji']);
    expect(output).toContain('No problems found');
    expect(code).toBe(0);
  });
});

/** What a program does with the package; ends with the answer. */
const program = `
  const { createClient } = soundpost;
  const client = createClient({ baseUrl, apiKey });
  const { jobId } = await client.extract({ source: { type: 'url', url }, output: { format: 'mp3' } });
  let steps = 0;
  const job = await client.waitFor(jobId, { onProgress: () => { steps += 1; } });
  const file = await (await client.download(jobId)).blob();
  const missing = await client.job('job_0000000000000000').catch(({ name, code }) => name + ' ' + code);
  const { jobs } = await client.jobs();
`;
const outcome = `({ filename: job.outputFile.filename, hasAll: file.size === job.outputFile.size && steps > 0, missing,
    isListed: jobs.some((listed) => listed.jobId === jobId) })`;
const expected = {
  filename: 'tone.mp3',
  hasAll: true,
  missing: 'SoundpostError JOB_NOT_FOUND',
  isListed: true,
};

describe('soundpost-client, called', () => {
  let service: TestService;
  const page = createServer(async (request, response) => {
    const path = request.url ?? '';
    const isModule = path.endsWith('.js');
    response.writeHead(200, { 'content-type': isModule ? 'text/javascript' : 'text/html' });
    response.end(isModule ? await readFile(join(project, path)) : '<!doctype html><title>A page</title>');
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

  it.each([
    ['an ES module', 'program.mjs', "import * as soundpost from 'soundpost-client';"],
    ['CommonJS', 'program.cjs', "const soundpost = require('soundpost-client');"],
  ])('works in Node, from %s', async (_, name, first) => {
    await writeFile(
      join(project, name),
      `${first}
      const { baseUrl, apiKey, url } = process.env;
      (async () => {
        ${program}
        console.log(JSON.stringify(${outcome}));
      })();`,
    );
    const [code, output] = await run([process.execPath, name], {
      baseUrl: service.url,
      apiKey: service.key,
      url,
    });
    expect(JSON.parse(String(output))).toEqual(expected);
    expect(code).toBe(0);
  });

  it('works in a browser, on a page of another origin, as it is and bundled', async () => {
    await writeFile(
      join(project, 'page.mjs'),
      "export { createClient, SoundpostError } from 'soundpost-client';\n",
    );
    const bundle = ['page.mjs', '--bundle', '--format=esm', '--platform=browser', '--outfile=bundled.js'];
    expect((await run([join(BIN, 'esbuild'), ...bundle, '--log-level=error']))[0]).toBe(0);
    // Nothing of it has an effect when it is loaded, so what is not used is left out.
    expect(await readFile(join(project, 'bundled.js'), 'utf8')).not.toContain('WebhookSignatureError');
    const browser = await startChromium({ width: 800, height: 600 });
    try {
      const tab = await browser.context.newPage();
      await tab.goto(origin);
      const values = JSON.stringify({ baseUrl: service.url, apiKey: service.key, url });
      for (const module of ['/node_modules/soundpost-client/dist/index.js', '/bundled.js']) {
        const answer = await tab.evaluate(`(async () => {
          const soundpost = await import('${module}');
          const { baseUrl, apiKey, url } = ${values};
          ${program}
          return ${outcome};
        })()`);
        expect(answer, module).toEqual(expected);
      }
    } finally {
      await browser.close();
    }
  });
});

describe('the types of soundpost-client', () => {
  beforeAll(async () => {
    // A TypeScript project of Node has these; they are no part of the package.
    await symlink(join(ROOT, 'node_modules/@types'), join(project, 'node_modules/@types'));
    await symlink(join(ROOT, 'node_modules/undici-types'), join(project, 'node_modules/undici-types'));
  });

  async function check(file: string, more: Readonly<Record<string, unknown>> = {}) {
    const compilerOptions = {
      ...{ strict: true, noEmit: true, module: 'node16', target: 'es2022', types: ['node'] },
      ...{ skipLibCheck: false, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
      ...more,
    };
    const config = join(project, `${file}.json`);
    await writeFile(config, JSON.stringify({ compilerOptions, files: [file] }));
    return run([join(BIN, 'tsc'), '-p', config]);
  }

  const user = `
    const client = createClient({ baseUrl: 'https://soundpost.example', apiKey: 'sp_x' });
    const source = { type: 'url', url: 'https://example.com/a.mp4' } as const;
    const request: JobRequest = { source, output: { format: 'mp3', loudness: -14 } };
    export const size: Promise<number> = client.waitFor('job_1').then(({ outputFile }) => outputFile.size);
    export const none: Promise<null> = client.waitFor<null>('job_1').then(({ outputFile }) => outputFile);
    void client.extract({ source, output: { format: 'probe' } });
    export const of = (event: WebhookEvent) => (event.event === 'job.failed' ? event.error.code : undefined);
    export const names = ({ outputFiles }: Job): string[] => outputFiles.map((file: OutputFile | { filename: string }) => file.filename);
    void client.extract(request);
    void client.extract({ file: new Blob([]), output: { format: 'opus' } });
    // @ts-expect-error no such format
    void client.extract({ source, output: { format: 'mp9' } });
    // @ts-expect-error no such field
    void client.extract({ source, output: { format: 'mp3', volume: 3 } });
    // @ts-expect-error an upload has a file
    void client.extract({ source: { type: 'upload', url: 'https://example.com/a.mp4' }, output: { format: 'mp3' } });
    // @ts-expect-error a number
    export const text: Promise<string> = client.usage().then(({ reads }) => reads.limit);`;
  const types = 'type Job, type JobRequest, type OutputFile, type WebhookEvent';

  it.each([
    ['an ES module', 'user.mts'],
    ['CommonJS', 'user.cts'],
  ])('tell a mistake from a request, in %s', async (_, file) => {
    await writeFile(
      join(project, file),
      `import { createClient, ${types} } from 'soundpost-client';\n${user}`,
    );
    expect(await check(file)).toEqual([0, '']);
  });

  it('need no types of Node on a page', async () => {
    await writeFile(
      join(project, 'page.mts'),
      `import { createClient, ${types} } from 'soundpost-client';\n${user}`,
    );
    expect(await check('page.mts', { types: [], lib: ['es2022', 'dom'] })).toEqual([0, '']);
  });

  it('are those that the schemas have, of each operation', async () => {
    await writeFile(
      join(project, 'same.mts'),
      `import type * as plain from 'soundpost-client';
      import type * as source from '${join(ROOT, 'packages/client/src/index.ts')}';
      type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
      type Called<F> = F extends (...args: infer Given) => infer Answer ? [Given, Answer] : F;
      type AllSame<A, B> = { [Name in keyof A]: Name extends keyof B ? Same<Called<A[Name]>, Called<B[Name]>> : false };
      type Operations<Client> = Omit<Client, 'uploads' | 'keys'>;
      declare const operations: AllSame<Operations<source.SoundpostClient>, Operations<plain.SoundpostClient>>;
      export const isSame: Record<keyof typeof operations, true> = operations;
      declare const uploads: AllSame<source.Uploads, plain.Uploads>;
      export const isSameForUploads: Record<keyof typeof uploads, true> = uploads;
      declare const keys: AllSame<source.SoundpostClient['keys'], plain.SoundpostClient['keys']>;
      export const isSameForKeys: Record<keyof typeof keys, true> = keys;
      export const isSameEvent: Same<source.WebhookEvent, plain.WebhookEvent> = true;
      export const isSameCode: Same<source.SoundpostErrorCode, plain.SoundpostErrorCode> = true;`,
    );
    const inSource = { allowImportingTsExtensions: true, skipLibCheck: true, lib: ['es2024', 'dom'] };
    expect(await check('same.mts', { ...inSource, module: 'nodenext' })).toEqual([0, '']);
  });
});
