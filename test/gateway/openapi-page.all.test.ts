// @module-tag chromium
/** The gateway's OpenAPI document to a linter, and as a page in a real browser. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gatewayErrorCatalogue } from 'soundpost-contract/gateway-errors';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { lookAtReference } from 'soundpost-testing/reference-page';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, makeFolder, run, startTestGateway, type TestGateway } from './gateway-fixture.ts';

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
