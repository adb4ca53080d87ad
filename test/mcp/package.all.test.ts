/** The package soundpost-mcp, as npm packs it: it starts beside what it depends on, without the checkout. */
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { fetch } from 'soundpost-testing/http';
import { startProcess } from 'soundpost-testing/service';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-mcp-'));
  await run(join(ROOT, 'script/build-mcp'), [join(folder, 'source')], { env });
  await run('npm', ['pack', '--pack-destination', folder], { env, cwd: join(folder, 'source') });
  const [packed = ''] = globSync('*.tgz', { cwd: folder });
  await run('tar', ['xzf', packed], { cwd: folder });
  await mkdir(join(folder, 'node_modules'));
  for (const name of ['@modelcontextprotocol', 'express', 'zod']) {
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('depends on the SDK, and on none of our packages', async () => {
  const { bin, dependencies } = JSON.parse(await readFile(join(folder, 'package/package.json'), 'utf8'));
  expect(bin).toEqual({ 'soundpost-mcp': 'dist/main.js' });
  expect(Object.keys(dependencies)).toEqual(['@modelcontextprotocol/sdk', 'express', 'zod']);
});

it('starts over stdio', async () => {
  const client = new Client({ name: 'test', version: '1' });
  const command = join(folder, 'package/dist/main.js');
  const given = { PATH: env.PATH, SOUNDPOST_API_KEY: 'sp_x' };
  await client.connect(new StdioClientTransport({ command, env: given }));
  expect((await client.listTools()).tools.length).toBe(6);
  await client.close();
});

it('listens with --http', async () => {
  const started = startProcess(
    [process.execPath, 'package/dist/main.js', '--http', '--port', '0'],
    {},
    folder,
  );
  const url = await started.says(/^MCP at (\S+)$/m);
  expect((await fetch(url, { method: 'POST' })).status).toBe(401);
  started.signal('SIGTERM');
  await started.exited;
});
