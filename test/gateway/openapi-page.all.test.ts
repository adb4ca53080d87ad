// @module-tag chromium
// @module-tag python3
/** The gateway's OpenAPI document to a linter, as a page in a real browser, and as examples that are run. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { sampledOperations } from '../api/code-samples.ts';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { lookAtReference } from '../reference-page.ts';
import {
  type Answer,
  API_KEY,
  makeFolder,
  run,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let document: Answer['body'];

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  document = (await gateway.call('GET', '/openapi.json', undefined, { apikey: '' })).body;
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const summaries = (): string[] =>
  Object.values(document.paths as Record<string, Record<string, { summary: string }>>).flatMap((item) =>
    Object.values(item).map(({ summary }) => summary),
  );

it('its examples pass a linter', async () => {
  const path = join(folder.path, 'openapi.json');
  await writeFile(path, JSON.stringify(document));
  await run(process.execPath, [
    'node_modules/@redocly/cli/bin/cli.js',
    'lint',
    path,
    '--config',
    'redocly.yaml',
  ]);
});

it('GET /docs is a page with every operation and error that asks nobody else, about which the browser has no complaint', async () => {
  expect(summaries().length).toBeGreaterThan(20);
  const awaited = [...summaries(), ...Object.keys(gatewayErrorCatalogue)];
  const seen = await lookAtReference(`${gateway.url}/docs`, { width: 1280, height: 900 }, awaited);
  expect(seen.complaints).toEqual([]);
  expect(seen.origins).toEqual([new URL(gateway.url).origin]);
  expect(seen.width).toBe(1280);
}, 120_000);

it('shows each operation in curl, JavaScript and Python, which ask for it', async () => {
  const sampled = sampledOperations(document);
  expect(sampled).toHaveLength(summaries().length);
  for (const { operationId, labels, samples } of sampled) {
    expect(labels, operationId).toEqual(['curl', 'JavaScript', 'Python']);
    for (const source of Object.values(samples)) {
      expect(source, operationId).toContain(gateway.url);
      expect(source, operationId).not.toMatch(/soundpost-client|\{\w+\}/);
    }
  }
  const list = sampled.find(({ operationId }) => operationId === 'fetchInstances');
  for (const [program, option, source] of [
    [process.execPath, '--input-type=module', list?.samples.JavaScript],
    ['python3', '-c', list?.samples.Python],
  ] as const) {
    const text = String(source).replaceAll('YOUR_API_KEY', API_KEY);
    const args = option === '-c' ? [option, text] : [option, '--eval', text];
    const { stdout } = await promisify(execFile)(program, args);
    expect(stdout).toContain('instanceName');
  }
});
