/** The MCP project's own conformance suite against our server: initialize, ping, tools, DNS rebinding, and each message against the schema of the protocol. */
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createApp } from 'soundpost-mcp/http';
import { startProcess } from 'soundpost-testing/service';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';

const ROOT = resolve(import.meta.dirname, '../..');
/** The newest version of the protocol that the SDK speaks. */
const PROTOCOL = '2025-11-25';

const Checks = z.array(z.looseObject({ id: z.string(), status: z.string() }));

const app = createApp({ url: 'http://127.0.0.1:1' });
// The suite sends no key.
const server = createServer((request, response) => {
  request.headers['x-api-key'] = 'sp_of_the_suite';
  app(request, response);
});
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-mcp-conformance-'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

it('fails what it has no tools for, and nothing else', async () => {
  const { exited, output } = startProcess(
    [
      ...[process.execPath, join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')],
      ...['server', '--url', `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`],
      ...['--expected-failures', join(import.meta.dirname, 'expected-failures.yml')],
      ...['--spec-version', PROTOCOL, '--output-dir', folder],
    ],
    {},
  );
  expect(await exited, output()).toBe(0);
  for (const scenario of ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']) {
    expect(output()).toMatch(new RegExp(`✓ ${scenario}: [1-9]\\d* passed, 0 failed`));
  }
});

it('finds each message valid by the schema of the protocol, also in scenarios that fail', () => {
  const checks = globSync('*/checks.json', { cwd: folder }).flatMap((path) =>
    Checks.parse(JSON.parse(readFileSync(join(folder, path), 'utf8'))),
  );
  const wire = checks.filter(({ id }) => id.startsWith('wire-schema'));
  expect(wire.length).toBeGreaterThan(20);
  expect(wire.filter(({ status }) => status !== 'SUCCESS')).toEqual([]);
});
